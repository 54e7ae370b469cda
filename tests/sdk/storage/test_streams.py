"""What a store answers, byte by byte, and how requests are signed."""

import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from minio.credentials.credentials import Credentials
from minio.credentials.providers import Provider, StaticProvider

from determined.storage import S3StorageManager, s3_bucket, s3_signing, s3_streams
from determined.storage.bucket import Broken, StoreError
from determined.storage.s3_signing import Signer
from determined.storage.s3_streams import Streams
from tests.fixtures.own_time import set_time
from tests.sdk.storage.conftest import BUCKET, KEY, SECRET

TEXT = b"0123456789"
PLAIN = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 10\r\nContent-Range: bytes 5-14/99\r\n\r\n" + TEXT
CLOSING = PLAIN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
CHUNKED = (
    b"HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\nContent-Range: bytes 5-14/99\r\n\r\n"
    b"3\r\n012\r\n7\r\n3456789\r\n0\r\n\r\n"
)
OLD = b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\nContent-Range: bytes 5-14/99\r\n\r\n" + TEXT
LONG_HEAD = PLAIN.replace(b"\r\n\r\n", b"\r\n" + b"X-Meta: " + b"m" * 20_000 + b"\r\n\r\n")


class Talker:
    """Says given answers, in given pieces, to one request after another; counts connections."""

    def __init__(self, *answers):
        self.answers = [[answer] if isinstance(answer, bytes) else answer for answer in answers]
        self.connections, self.requests = 0, []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while self.answers:
            try:
                talk, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with talk:
                talk.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while self.answers and (request := self._request(talk)):
                    self.requests.append(request)
                    pieces = self.answers.pop(0)
                    for piece in pieces:
                        talk.sendall(piece)
                    if b"close" in pieces[0] or pieces[0].startswith(b"HTTP/1.0") or pieces[-1] == b"":
                        break

    def _request(self, talk):
        request = b""
        while not request.endswith(b"\r\n\r\n") and (more := talk.recv(4096)):
            request += more
        return request

    def close(self):
        self._listening.close()


@pytest.fixture
def talk():
    """Begin a talk: gives the talker and streams from it."""
    begun = []

    def begin(*answers):
        talker, provider = Talker(*answers), s3_bucket.provider((KEY, SECRET))
        client = s3_bucket.connect(f"127.0.0.1:{talker.port}", False, provider, "us-east-1")
        streams = Streams(client, BUCKET, provider)
        begun.extend([streams, talker])
        return talker, streams

    yield begin
    for each in begun:
        each.close()


def read(streams, size=4):
    """Ten bytes from 5 in small pieces."""
    content, buffer = b"", memoryview(bytearray(size))
    with streams.get("id/f", 5, 10) as body:
        while count := body.readinto(buffer):
            content += buffer[:count]
    return content


def test_a_connection_is_used_again(talk):
    talker, streams = talk(PLAIN, [PLAIN[:9], PLAIN[9:-4], PLAIN[-4:]], PLAIN)
    assert [read(streams), read(streams), read(streams, size=64)] == [TEXT] * 3
    assert talker.connections == 1
    for request in talker.requests:
        assert request.startswith(b"GET /checkpoints/id/f?X-Amz-Algorithm=AWS4-HMAC-SHA256&")
        assert b"\r\nHost: 127.0.0.1:%d\r\n" % talker.port in request
        assert b"\r\nRange: bytes=5-14\r\n" in request


@pytest.mark.parametrize("answer", [CLOSING, CHUNKED, OLD, LONG_HEAD])
def test_other_ways_to_say_the_same(talk, answer):
    talker, streams = talk([answer, b""], PLAIN)
    assert [read(streams), read(streams)] == [TEXT] * 2
    assert talker.connections == 2, "what is left of an answer is not taken for the next"


def test_a_body_that_is_not_read_to_its_end_is_not_mixed_with_the_next(talk):
    talker, streams = talk([PLAIN, b""], PLAIN)
    with streams.get("id/f", 5, 10) as body:
        assert body.readinto(memoryview(bytearray(3))) == 3
    assert read(streams) == TEXT
    assert talker.connections == 2


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n", StoreError, "416 Range Not"),
        (PLAIN.replace(b"bytes 5-14", b"bytes 0-9"), StoreError, "other bytes than 10 from 5"),
        (PLAIN.replace(b"bytes 5-14", b"bytes 5-13"), StoreError, "from 5: bytes 5-13/99, length 10"),
        (PLAIN.replace(b"/99", b"/" + b"9" * 9_000), StoreError, "other bytes than 10 from 5"),
        (PLAIN.replace(b"Length: 10", b"Length: 11"), StoreError, "other bytes than 10 from 5"),
        (
            b"HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2b\r\n<Error><Code>ExpiredToken</Code></Error>xxx\r\n0\r\n\r\n",
            StoreError,
            "id/f: 403 Forbidden: ExpiredToken",
        ),
        (b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n", Broken, "503 Slow Down"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", StoreError, "204 No Content"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Broken, "the connection was lost: BadStatusLine"),
        (b"HTTP/1.1 206 Par", Broken, "the connection was lost"),
        (b"", Broken, "the connection was lost"),
    ],
)
def test_other_answers_are_failures(talk, answer, kind, text):
    _, streams = talk([answer, b""])
    with pytest.raises(StoreError, match=text) as caught:
        read(streams)
    assert type(caught.value) is kind


def test_a_connection_that_ends_early_gives_less(talk):
    _, streams = talk([PLAIN[:-3], b""])
    assert read(streams) == TEXT[:-3]


def test_connections_that_have_died_are_not_tried_one_after_another(talk):
    _, streams = talk([PLAIN, b""], PLAIN)
    read(streams)
    idle = streams._idle[0]
    for _ in range(8):
        dead, _far = socket.socketpair()
        _far.close()
        streams._idle.append(s3_streams._Connection.__new__(s3_streams._Connection))
        streams._idle[-1].__dict__ = {**idle.__dict__, "_socket": dead}
    with pytest.raises(Broken):
        read(streams)
    assert read(streams) == TEXT


def test_a_store_that_says_nothing_is_not_waited_for_forever(talk, monkeypatch):
    monkeypatch.setattr(s3_streams, "SILENCE_S", 1)
    _, streams = talk([PLAIN[:-3]], PLAIN)
    with pytest.raises(Broken, match="nothing came for 1 s"):
        read(streams)


def at_noon(client, monkeypatch):
    """Whatever it signs it signs at one time."""
    noon, sign = datetime(2026, 11, 21, 12, tzinfo=UTC), client.get_presigned_url
    monkeypatch.setattr(
        client, "get_presigned_url", lambda *arguments, **named: sign(*arguments, **named, request_date=noon)
    )


@pytest.mark.parametrize("token", [None, "a/b+c="])
@pytest.mark.parametrize(
    ("endpoint", "bucket", "region"),
    [
        ("http://127.0.0.1:9000", BUCKET, "us-east-1"),
        ("http://[::1]:9000", BUCKET, "us-east-1"),
        ("https://Store.example:443", "sample", "garage"),
        ("https://s3.amazonaws.com", BUCKET, "eu-central-1"),
        ("https://s3.eu-west-1.amazonaws.com", "with.dots", None),
        ("https://oss-cn.aliyuncs.com", BUCKET, "us-east-1"),
        ("https://storage.googleapis.com", BUCKET, "us-east-1"),
    ],
)
def test_addresses_are_those_of_the_client(monkeypatch, endpoint, bucket, region, token):
    url, provider = urlsplit(endpoint), StaticProvider(KEY, SECRET, token)
    client = s3_bucket.connect(url.netloc, url.scheme == "https", provider, region)
    at_noon(client, monkeypatch)
    signer = Signer(client, bucket, provider)
    keys = [
        "id/weights.bin",
        "a b/ü+&=%~-_.*'()!$@,;:",
        "sample/sample",
        "a//b///",
        "%2F%25/?#[]",
        "日本\t\n",
    ]
    addresses = [signer.address(key).geturl() for key in keys]
    assert signer._common.pattern is not None
    assert addresses == [
        client.get_presigned_url("GET", bucket, key, expires=timedelta(hours=1)) for key in keys
    ]
    assert ("X-Amz-Security-Token" in parse_qs(urlsplit(addresses[0]).query)) == (token is not None)


class Role(Provider):
    """Credentials that end, and are replaced."""

    def __init__(self):
        self.time = 1

    def retrieve(self):
        return Credentials(f"KEY{self.time}", SECRET, f"token{self.time}")


def test_credentials_that_are_replaced_are_signed_with_at_once():
    role = Role()
    signer = Signer(s3_bucket.connect("127.0.0.1:9000", False, role, "us-east-1"), BUCKET, role)
    for moment in (1, 1, 2):
        role.time = moment
        params = parse_qs(signer.address("id/f").query)
        assert params["X-Amz-Security-Token"] == [f"token{moment}"]
        assert params["X-Amz-Credential"][0].startswith(f"KEY{moment}/")
    assert signer._common.pattern is not None


def test_a_client_with_other_keys_signs_for_itself(monkeypatch):
    client = s3_bucket.connect("127.0.0.1:9000", False, StaticProvider(KEY, SECRET), "us-east-1")
    at_noon(client, monkeypatch)
    signer = Signer(client, BUCKET, StaticProvider(KEY, "another"))
    assert signer.address("id/f").geturl() == client.get_presigned_url(
        "GET", BUCKET, "id/f", expires=timedelta(hours=1)
    )


def test_addresses_are_signed_anew_before_they_are_old(monkeypatch):
    provider = StaticProvider(KEY, SECRET)
    client = s3_bucket.connect("127.0.0.1:9000", False, provider, "us-east-1")
    signer, signed = Signer(client, BUCKET, provider), []
    sign = client.get_presigned_url
    monkeypatch.setattr(
        client,
        "get_presigned_url",
        lambda *arguments, **named: signed.append(arguments) or sign(*arguments, **named),
    )
    signer.address("a"), signer.address("b")
    assert len(signed) == 1
    later = time.monotonic() + s3_signing._RENEWED_S
    set_time(monkeypatch, s3_signing, monotonic=lambda: later)
    signer.address("c")
    assert len(signed) == 2


@pytest.mark.live
def test_odd_names_are_signed_as_a_real_store_checks_them(s3_url, tmp_path):
    names = ["with space", "50%", "plus+and&=", "ümläut~", "'quoted'(1)*!", "a" * 250]
    source = tmp_path / "source"
    source.mkdir()
    for name in names:
        (source / name).write_text(name)
    storage = S3StorageManager(BUCKET, KEY, SECRET, s3_url, f"odd/{tmp_path.name}")
    storage.upload(source, "one")
    streams = storage._streams()
    storage._streams = lambda: streams
    storage.download("one", tmp_path / "back")
    assert streams._signer._common.pattern is not None
    assert {p.name: p.read_text() for p in (tmp_path / "back").iterdir()} == {name: name for name in names}
