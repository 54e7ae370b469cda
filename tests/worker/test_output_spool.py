"""Spools as a reader sees them; written by the same class that the shim uses."""

import pytest

from worker import output_spool
from worker.output_spool import SpoolReader, parse_line
from worker.shim.spool import NOTICE, STDERR, STDOUT, Spool


@pytest.fixture
def run(tmp_path):
    (tmp_path / "spool").mkdir()
    return tmp_path


def spool_of(run, **limits):
    return Spool(str(run / "spool"), **limits)


def drain(reader):
    batches = []
    while (batch := reader.read()) is not None:
        batches.append(batch)
    return batches


def texts(batches):
    return [line.text for batch in batches for line in batch.lines]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plain", (None, None, "plain")),
        ("INFO: [12] root: hello", (None, "INFO", "[12] root: hello")),
        ("[rank=3] WARNING: [12] x: y", (3, "WARNING", "[12] x: y")),
        (" [rank=0]  ERROR:  two", (0, "ERROR", " two")),
        ("[rank=0]DEBUG:x", (0, "DEBUG", "x")),
        ("[rank=12] ", (12, None, "")),
        ("CRITICAL:", (None, "CRITICAL", "")),
        ("TRACE: no", (None, None, "TRACE: no")),
        ("info: no", (None, None, "info: no")),
        ("  INFO: too far", (None, None, "  INFO: too far")),
        ("INFO : no", (None, None, "INFO : no")),
        ("INFO: [rank=1] later", (None, "INFO", "[rank=1] later")),
        ("[rank=-1] x", (None, None, "[rank=-1] x")),
        ("[rank=99999999999999999999] x", (None, None, "[rank=99999999999999999999] x")),
        ("", (None, None, "")),
    ],
)
def test_parse_line(line, expected):
    assert parse_line(line) == expected


def test_lines_come_with_stream_time_rank_and_level(run):
    spool = spool_of(run)
    spool.append(STDOUT, [b"[rank=1] INFO: out", b""])
    spool.append(STDERR, [b"err"])
    spool.append(NOTICE, [b"INFO: from the shim"])
    (batch,) = drain(SpoolReader(run))
    assert [(line.stdtype, line.level, line.rank, line.text) for line in batch.lines] == [
        ("stdout", "INFO", 1, "out"),
        ("stdout", None, None, ""),
        ("stderr", None, None, "err"),
        ("stderr", "WARNING", None, "INFO: from the shim"),
    ]
    assert batch.offset == 0
    assert 1_500_000_000 < batch.lines[0].at < 10_000_000_000


def test_bytes_that_are_no_text_keep_their_line(run):
    spool_of(run).append(STDOUT, [b"caf\xe9 \xff\x00 \xc3\xa9"])
    assert texts(drain(SpoolReader(run))) == ["caf\ufffd \ufffd\ufffd é"]


def test_nothing_there(tmp_path):
    assert SpoolReader(tmp_path).read() is None


def test_batches_are_bounded_in_lines(run, monkeypatch):
    monkeypatch.setattr(output_spool, "BATCH_LINES", 3)
    spool_of(run).append(STDOUT, [str(n).encode() for n in range(8)])
    batches = drain(SpoolReader(run))
    assert [len(batch.lines) for batch in batches] == [3, 3, 2]
    assert [batch.offset for batch in batches][1:] == [batch.end for batch in batches][:-1]
    assert texts(batches) == [str(n) for n in range(8)]


def test_batches_are_bounded_in_bytes_as_they_are_sent(run, monkeypatch):
    monkeypatch.setattr(output_spool, "BATCH_BYTES", 10_000)
    spool_of(run).append(STDOUT, [b"\x01" * 1000] * 4 + [b"y" * 50_000, b"z"])
    batches = drain(SpoolReader(run))
    sizes = [[len(line.text) for line in batch.lines] for batch in batches]
    assert sizes == [[1000], [1000], [1000], [1000], [50_000], [1]]


def test_what_was_not_acknowledged_comes_again_with_the_same_cuts(run):
    spool, first = spool_of(run), SpoolReader(run)
    spool.append(STDOUT, [b"a", b"b"])
    before = [first.read()]
    spool.append(STDOUT, [b"c"])
    before.append(first.read())
    spool.append(STDOUT, [b"d"])
    again = drain(SpoolReader(run))
    assert again[:2] == before
    assert [[line.text for line in batch.lines] for batch in again] == [["a", "b"], ["c"], ["d"]]


def test_what_was_acknowledged_does_not_come_again(run):
    spool, reader = spool_of(run), SpoolReader(run)
    spool.append(STDOUT, [b"a"])
    batch = reader.read()
    spool.append(STDOUT, [b"b"])
    reader.acknowledge(batch)
    reader.acknowledge(batch)
    assert reader.shipped == batch.end
    assert texts(drain(SpoolReader(run))) == texts(drain(reader)) == ["b"]


def test_acknowledging_a_later_one_covers_the_earlier(run, monkeypatch):
    monkeypatch.setattr(output_spool, "BATCH_LINES", 1)
    spool_of(run).append(STDOUT, [b"a", b"b", b"c"])
    reader = SpoolReader(run)
    batches = [reader.read(), reader.read()]
    reader.acknowledge(batches[1])
    assert texts([reader.read()]) == ["c"]
    reader.acknowledge(batches[0])
    assert texts(drain(SpoolReader(run))) == ["c"]


def test_at_most_64_batches_are_under_way(run, monkeypatch):
    monkeypatch.setattr(output_spool, "BATCH_LINES", 1)
    spool_of(run).append(STDOUT, [b"x"] * 100)
    reader = SpoolReader(run)
    batches = drain(reader)
    assert len(batches) == 64
    reader.acknowledge(batches[-1])
    assert len(drain(reader)) == 36


def test_segments_follow_each_other_and_go_when_shipped(run):
    spool, reader = spool_of(run, segment_bytes=200), SpoolReader(run)
    for n in range(100):
        spool.append(STDOUT, [b"line %d" % n])
    assert len(list((run / "spool").iterdir())) > 5
    batches = drain(reader)
    assert texts(batches) == [f"line {n}" for n in range(100)]
    for batch in batches:
        reader.acknowledge(batch)
    assert len(list((run / "spool").iterdir())) == 1
    spool.append(STDOUT, [b"after"])
    assert texts(drain(reader)) == ["after"]


def test_a_record_that_is_not_whole_yet_waits(run):
    spool_of(run).append(STDOUT, [b"whole", b"not yet whole"])
    (segment,) = (run / "spool").iterdir()
    data = segment.read_bytes()
    for missing in (1, 13, 20):
        segment.write_bytes(data[:-missing])
        assert texts(drain(SpoolReader(run))) == ["whole"]
        (run / "shipped.json").unlink()
    reader = SpoolReader(run)
    segment.write_bytes(data[:-1])
    reader.read()
    segment.write_bytes(data)
    assert texts(drain(reader)) == ["not yet whole"]


class FullDisk:
    """Makes writes beyond a number of bytes fail as a full disk does."""

    def __init__(self, monkeypatch, room):
        import os

        self.room, self.write = room, os.write
        monkeypatch.setattr("worker.shim.spool.os.write", self)

    def __call__(self, fd, data):
        if self.room == 0 and len(data):
            raise OSError(28, "No space left on device")
        part = bytes(data[: self.room])
        self.room -= len(part)
        return self.write(fd, part)


def test_a_full_disk_drops_whole_lines_and_tells_how_many(run, monkeypatch):
    spool, reader = spool_of(run), SpoolReader(run)
    spool.append(STDOUT, [b"before"])
    disk = FullDisk(monkeypatch, room=5)
    spool.append(STDOUT, [b"gone 1", b"gone 2"])
    spool.append(STDERR, [b"gone 3"])
    assert texts(drain(reader)) == ["before"]
    disk.room = 10_000
    spool.append(STDOUT, [b"after"])
    assert texts(drain(reader)) == ["3 lines of output were lost here: No space left on device", "after"]
    assert spool.lost_lines == 3


def test_output_lost_at_the_end_is_reported(run, monkeypatch):
    spool = spool_of(run)
    disk = FullDisk(monkeypatch, room=0)
    spool.append(STDOUT, [b"gone"])
    disk.room = 10_000
    spool.close()
    assert texts(drain(SpoolReader(run))) == ["1 lines of output were lost here: No space left on device"]


def test_output_that_nobody_fetches_has_a_limit(run):
    spool, reader = spool_of(run, segment_bytes=100, limit_bytes=400), SpoolReader(run)
    for n in range(40):
        spool.append(STDOUT, [b"line %d" % n])
    assert spool.lost_lines > 0
    batches = drain(reader)
    reader.acknowledge(batches[-1])
    spool.append(STDOUT, [b"again"])
    drained = texts(drain(reader))
    assert "lines of output were lost here" in drained[0]
    assert drained[1:] == ["again"]
    assert len(texts(batches)) + spool.lost_lines == 40


def test_room_for_the_readers_notes_is_taken_early(run):
    SpoolReader(run)
    assert (run / "shipped.json").stat().st_size == 4096


def test_output_without_end_is_kept_up_to_a_size_and_its_log_says_so(run):
    spool = spool_of(run, segment_bytes=4096)
    spool.max_bytes = 1 << 20
    for number in range(3000):
        spool.append(STDOUT, [f"{number} {'x' * 1000}".encode()])
    spool.append(NOTICE, [b"it ended"])
    spool.close()
    assert sum(file.stat().st_size for file in (run / "spool").iterdir()) < (1 << 20) + 8192
    reader, all_lines = SpoolReader(run), []
    while (batch := reader.read()) is not None:
        all_lines += [line.text for line in batch.lines]
        reader.acknowledge(batch)
    *kept_lines, cut, end = all_lines
    assert "the output of this run has reached 1 MiB" in cut
    assert "it ended" in end
    assert sum(map(len, kept_lines)) < (1 << 20) + 2000
    assert spool.lost_lines == 3000 - len(kept_lines)
