"""Bodies in many small pieces cost the loop no more than others, whoever sends them."""

from __future__ import annotations

import random

import h11
import pytest
from h11._readers import ChunkedReader

from services.web.small_chunks import MAX_HINTS, JoiningChunkedReader, install
from tests.gateway.wired import answered, wired

HEAD = b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
SPOILED = [b"\r", b"\n", b";", b"g", b"x", b"\0", b"", b" ", b"\r\n", b"-1", b"0"]


def events(reader, pieces, monkeypatch):
    """What h11 makes of a request that comes in pieces: the body, how many parts it had, and how it ended."""
    monkeypatch.setitem(h11._readers.READERS[h11.SEND_BODY], "chunked", reader)
    body, parts, end = b"", 0, None
    wire = h11.Connection(h11.SERVER)
    wire.receive_data(HEAD)
    try:
        for piece in pieces:
            wire.receive_data(piece)
            while (event := wire.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    body, parts = body + bytes(event.data), parts + 1
                elif isinstance(event, h11.EndOfMessage):
                    end = [(bytes(name), bytes(value)) for name, value in event.headers]
    except h11.RemoteProtocolError as error:
        end = type(error)
    return body, parts, end


def body_pieces(chance):
    """A body in chunks as somebody may write it, at times not as they should, in pieces as it may come."""
    wire = b""
    for _ in range(chance.randrange(12)):
        data = chance.randbytes(chance.choice((1, 1, 2, 17, 300)))
        size = chance.choice(
            (
                "{:x}",
                "{:X}",
                "{:04x}",
                "{:x};a=b",
                "{:x} ",
                "{:x};" + "y" * 200,
                "{:x} ;a",
                "{:x};\r",
                "{:020x}\t",
            )
        ).format(len(data))
        wire += size.encode() + b"\r\n" + data + b"\r\n"
    wire += b"0\r\n" + chance.choice((b"", b"a: b\r\n")) + b"\r\n"
    if chance.random() < 0.4:
        at = chance.randrange(len(wire))
        wire = wire[:at] + chance.choice(SPOILED) + wire[at + chance.randrange(3) :]
    cuts = sorted(chance.choices(range(len(wire) + 1), k=chance.randrange(6)))
    return [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]


def test_chunks_are_read_as_h11_reads_them(monkeypatch):
    ends = set()
    for seed in range(500):
        pieces = [piece for piece in body_pieces(random.Random(seed)) if piece]
        plain = events(ChunkedReader, pieces, monkeypatch)
        ours = events(JoiningChunkedReader, pieces, monkeypatch)
        assert (ours[0], ours[2]) == (plain[0], plain[2]), seed
        assert ours[1] <= plain[1], seed
        ends.add(str(plain[2]))
    # Bodies with and without a trailer, some that never end, and some that are none.
    assert len(ends) >= 4, ends


def test_what_has_come_is_one_part(monkeypatch):
    for size in (b"1", b"1;a=b", b"0001 ", b"1;" + b"a" * 200, b"1;\r", b"%020d\t" % 1, b"1; \t"):
        chunk = size + b"\r\nx\r\n"
        body, parts, end = events(JoiningChunkedReader, [chunk * 10_000, b"0\r\n\r\n"], monkeypatch)
        assert (body, parts, end) == (b"x" * 10_000, 1, [])


def test_a_body_of_ever_more_small_chunks_is_refused_and_one_of_larger_ones_is_not(monkeypatch):
    small, large = b"1\r\nx\r\n" * 1_000, (b"20\r\n" + b"x" * 32 + b"\r\n") * 1_000
    assert events(JoiningChunkedReader, [small] * 100, monkeypatch)[2] is h11.RemoteProtocolError
    assert events(JoiningChunkedReader, [*[large] * 100, b"0\r\n\r\n"], monkeypatch)[2] == []
    one_by_one = [*[b"1\r\nx\r\n"] * 60_000, b"0\r\n\r\n"]
    assert events(JoiningChunkedReader, one_by_one, monkeypatch)[2] == []


def test_hints_come_to_an_end():
    install()
    wire = h11.Connection(h11.CLIENT)
    wire.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    wire.receive_data(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 10_000)
    for _ in range(MAX_HINTS):
        assert isinstance(wire.next_event(), h11.InformationalResponse)
    with pytest.raises(h11.RemoteProtocolError, match="more than"):
        wire.next_event()


def test_small_chunks_without_a_session_cost_few_events(gateway, monkeypatch):
    kinds, next_event = [], h11.Connection.next_event

    def counted(connection):
        event = next_event(connection)
        kinds.append(type(event))
        return event

    monkeypatch.setattr(h11.Connection, "next_event", counted)
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def send():
        async with wired(gateway) as port:
            return await answered(port, head, *[b"1\r\n \r\n" * 20_000] * 10, b"2\r\n{}\r\n0\r\n\r\n")

    assert gateway.run(send()).startswith(b"HTTP/1.1 4")
    # As many as times that something came, not as the 200,000 chunks.
    assert 0 < kinds.count(h11.Data) < 1_000
