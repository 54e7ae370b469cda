"""Reads a run's output from its spool, in batches that stay the same however often they are read.

A batch is identified by its start, so a batch that was sent but perhaps not received must be repeated with
the same end. The reader therefore records where a batch ends before returning it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from det_contracts.reports import LogLine
from worker.hidden_values import HiddenValues, hide
from worker.shim.spool import HEADER, NOTICE, STDERR, STDOUT, segment_name, segments

BATCH_LINES = 1000
BATCH_BYTES = 512 * 1024
"""Maximum size of a batch as JSON, in bytes; a single line may exceed it."""
LINE_OVERHEAD_BYTES = 64
MAX_IN_FLIGHT = 64
LAST_LINES = 200
READ_BYTES = 1024 * 1024
NOTES_BYTES = 4096
_STDTYPES = {STDOUT: "stdout", STDERR: "stderr", NOTICE: "stderr"}
_RANK = re.compile(r" ?\[rank=([0-9]{1,9})\] ?")
_LEVEL = re.compile(r" ?(DEBUG|INFO|WARNING|ERROR|CRITICAL): ?")
_encode = msgspec.json.Encoder().encode


class Batch(msgspec.Struct, frozen=True):
    """Consecutive lines. `offset` and `end` are positions in the spool; the next batch begins at `end`."""

    offset: int
    end: int
    lines: list[LogLine]


class Notes(msgspec.Struct, frozen=True):
    """What the reader remembers across restarts."""

    shipped: int = 0
    """Everything before this position was acknowledged."""
    cuts: tuple[int, ...] = ()
    """Ends of the batches that were returned after it."""


def parse_line(text: str) -> tuple[int | None, str | None, str]:
    """Split rank and level off the front of a line. Returns (rank, level, rest). See scheduling spec, 11."""
    rank = level = None
    if matched := _RANK.match(text):
        rank, text = int(matched[1]), text[matched.end() :]
    if matched := _LEVEL.match(text):
        level, text = matched[1], text[matched.end() :]
    return rank, level, text


class SpoolReader:
    """Reads one run's spool. Only one reader may exist at a time.

    `read` returns batch after batch, up to 64 ahead of `acknowledge`. A new reader starts again at the first
    unacknowledged batch.
    """

    def __init__(self, run_dir: Path) -> None:
        self._folder = run_dir / "spool"
        self._hidden_values = HiddenValues(run_dir)
        self._notes_path = run_dir / "shipped.json"
        self._notes = self._load()
        self._returned_batches = 0
        if not self._notes_path.exists():
            # Reserve the space for the notes now: a disk that this output fills must not stop its shipping.
            with contextlib.suppress(OSError):
                self._save(self._notes)

    @property
    def shipped(self) -> int:
        """The position up to which everything was acknowledged."""
        return self._notes.shipped

    def end(self) -> int:
        """The position up to which there is output, complete or not. A look at the disk, without reading."""
        try:
            newest = max(segments(str(self._folder)), default=None)
        except FileNotFoundError:
            newest = None
        return 0 if newest is None else newest + (self._folder / segment_name(newest)).stat().st_size

    def read(self) -> Batch | None:
        """The next batch, or None if there is nothing new or 64 batches are unacknowledged.

        Raises `OSError` if the batch's end cannot be recorded; nothing is lost then.
        """
        cuts = self._notes.cuts
        offset = cuts[self._returned_batches - 1] if self._returned_batches else self._notes.shipped
        if self._returned_batches < len(cuts):
            # Cut exactly as before: a batch of another size under the same offset would lose or repeat lines.
            batch = self._scan(offset, until=cuts[self._returned_batches])
        # All cuts are in the notes, which must stay small.
        elif len(cuts) >= MAX_IN_FLIGHT:
            return None
        else:
            batch = self._scan(offset)
            if batch.end == offset:
                return None
            self._save(Notes(self._notes.shipped, (*cuts, batch.end)))
        self._returned_batches += 1
        return batch

    def acknowledge(self, batch: Batch) -> None:
        """Drop a batch and all before it, which are now stored elsewhere. May be repeated."""
        if batch.end <= self._notes.shipped:
            return
        cuts = tuple(cut for cut in self._notes.cuts if cut > batch.end)
        self._returned_batches -= len(self._notes.cuts) - len(cuts)
        self._save(Notes(batch.end, cuts))
        self._delete_segments()

    def _scan(self, offset: int, until: int | None = None) -> Batch:
        """Lines from a position, within one segment, up to the last complete record and the size limits."""
        segment = self._segment_at(offset)
        if segment is None:
            return Batch(offset, until or offset, [])
        start = max(offset, segment)
        with open(self._folder / segment_name(segment), "rb") as file:
            file.seek(start - segment)
            data = file.read(READ_BYTES)
        lines: list[LogLine] = []
        end, size = start, 0
        for line, line_end in _records(data, self._hidden_values):
            size += len(_encode(line.text)) + LINE_OVERHEAD_BYTES
            full = len(lines) == BATCH_LINES or (lines and size > BATCH_BYTES)
            if end == until or (until is None and full):
                break
            lines.append(line)
            end = start + line_end
        return Batch(offset, end, lines)

    def _segment_at(self, offset: int) -> int | None:
        """The segment that contains a position: the next one if the position is the end of a segment."""
        try:
            starts = segments(str(self._folder))
        except FileNotFoundError:
            return None
        before = [start for start in starts if start <= offset]
        later = [start for start in starts if start > offset]
        if before:
            size = (self._folder / segment_name(before[-1])).stat().st_size
            if before[-1] + size > offset or not later:
                return before[-1]
        return later[0] if later else None

    def _delete_segments(self) -> None:
        starts = segments(str(self._folder))
        for start, following in itertools.pairwise(starts):
            if following <= self._notes.shipped:
                (self._folder / segment_name(start)).unlink(missing_ok=True)

    def _load(self) -> Notes:
        try:
            return msgspec.json.decode(self._notes_path.read_bytes(), type=Notes)
        except FileNotFoundError:
            return Notes()
        except msgspec.DecodeError:
            # What is still there was not acknowledged, except perhaps for its beginning.
            return Notes(min(segments(str(self._folder)), default=0)) if self._folder.exists() else Notes()

    def _save(self, notes: Notes) -> None:
        """Overwrite existing bytes in one write, so that a full disk does not stop the shipping."""
        file = os.open(self._notes_path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, _encode(notes).ljust(NOTES_BYTES), 0)
        finally:
            os.close(file)
        self._notes = notes


def last_lines(run_dir: Path, most: int = LAST_LINES) -> list[LogLine]:
    """The last lines of a run's output, shipped or not. Raises `OSError` if they cannot be read."""
    folder = run_dir / "spool"
    starts = segments(str(folder))
    if not starts:
        return []
    data = (folder / segment_name(starts[-1])).read_bytes()
    hidden = HiddenValues(run_dir).in_data(data)
    # Of the other lines only the length is read: a segment may hold very many short ones.
    return [
        _line(at, stream, hide(data[start:end], hidden))
        for at, stream, start, end in deque(_record_bounds(data), most)
    ]


def _records(data: bytes, hidden_values: HiddenValues) -> Iterator[tuple[LogLine, int]]:
    """Complete records and where each ends. Raises `OSError` on anything else."""
    hidden = hidden_values.in_data(data)
    for at, stream, start, end in _record_bounds(data):
        yield _line(at, stream, hide(data[start:end], hidden)), end


def _record_bounds(data: bytes) -> Iterator[tuple[float, int, int, int]]:
    """Time, stream, and start and end of the text of each complete record."""
    position = 0
    while position + HEADER.size <= len(data):
        at, stream, length = HEADER.unpack_from(data, position)
        if stream not in _STDTYPES:
            raise OSError(errno.EIO, "the spool is damaged")
        position += HEADER.size + length
        if position > len(data):
            return
        yield at / 1_000_000, stream, position - length, position


def _line(at: float, stream: int, raw: bytes) -> LogLine:
    # Text columns cannot store NUL. Undecodable bytes are replaced visibly.
    text = raw.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    if stream == NOTICE:
        return LogLine(at, "stderr", "WARNING", None, text)
    rank, level, text = parse_line(text)
    return LogLine(at, _STDTYPES[stream], level, rank, text)
