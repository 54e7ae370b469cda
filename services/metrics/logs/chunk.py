"""Packs log lines into columns for storage, and unpacks them.

A line's text is UTF-8 without NUL (`database.replace_nul`). So NUL separates the lines of a chunk, and a
search can scan all its text at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import zstandard

from det_contracts.reports import LogLine
from services.kit.database import replace_nul
from services.metrics.domain import LogLines
from services.metrics.logs import tiers
from services.metrics.logs.tables import LINES_PER_BATCH

LARGEST_RANK = 2**31 - 1
LATEST_S = 2.0**42
"""Later times come from a broken clock."""
MICROSECONDS = 1_000_000
LINE_SEPARATOR = b"\0"
LEVEL, LEVEL_FULL = 1, 3
"""Compression levels for chunks that will soon be rewritten and for full ones."""
ERRORS = ("ERROR", "CRITICAL")
TRACEBACK = re.compile(r"(?:\[rank\d+\]: )?Traceback \(most recent call last\)")
"""PyTorch puts the rank before each line of a traceback that ends a distributed process."""


class Kind(msgspec.Struct, frozen=True, array_like=True):
    """Everything that lines have in common except time and text."""

    allocation_id: str
    worker_id: str
    source: str
    stdtype: str
    level: str | None
    rank: int | None


class KindStats(msgspec.Struct, frozen=True, array_like=True):
    """A kind of lines in a chunk."""

    kind: Kind
    count: int
    first_error: int | None
    """Id of the first line that is an error or begins a traceback."""
    last_error: int | None


_kinds_decoder = msgspec.json.Decoder(list[KindStats])
_lines = msgspec.json.Decoder(list[LogLine])


@dataclass(frozen=True)
class Lines:
    """Consecutive lines of one task."""

    ids: Any
    """int64, growing."""
    at: Any
    """int64, microseconds since the epoch."""
    kind: Any
    """uint32, index into `kinds`."""
    kinds: list[Kind]
    errors: Any
    """bool: whether the line is an error or begins a traceback."""
    texts: list[bytes]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def size(self) -> int:
        """Bytes of text."""
        return sum(map(len, self.texts))

    def slice(self, start: int, end: int) -> Lines:
        """Some of the lines."""
        cut = slice(start, end)
        return Lines(
            self.ids[cut], self.at[cut], self.kind[cut], self.kinds, self.errors[cut], self.texts[cut]
        )


def lines_of_batch(batch: LogLines, position: int, first: int = 0) -> Lines:
    """The lines of the batch at a position of LOGS, numbered from `first` within it."""
    lines = _lines.decode(batch.lines)
    kind_ids: dict[tuple[str, str | None, int | None], int] = {}
    kind_indexes = [
        kind_ids.setdefault((line.stdtype, line.level, line.rank), len(kind_ids)) for line in lines
    ]
    # A worker's clock may say anything, and the column has 64 bits.
    at = [round(min(max(line.at, -LATEST_S), LATEST_S) * MICROSECONDS) for line in lines]
    return Lines(
        np.arange(len(kind_indexes), dtype=np.int64) + (position * LINES_PER_BATCH + first),
        np.array(at, np.int64),
        np.array(kind_indexes, np.uint32),
        [_kind(batch, *key) for key in kind_ids],
        np.array([_is_error(line) for line in lines], bool),
        [replace_nul(line.text).encode() for line in lines],
    )


def _kind(batch: LogLines, stdtype: str, level: str | None, rank: int | None) -> Kind:
    # Scripts state their rank themselves, and the table's column has 32 bits.
    sound = rank is None or 0 <= rank <= LARGEST_RANK
    return Kind(batch.allocation_id, batch.worker_id, batch.source, stdtype, level, rank if sound else None)


def _is_error(line: LogLine) -> bool:
    # A traceback printed to stderr has no level, and is what most failures leave.
    return line.level in ERRORS or TRACEBACK.match(line.text) is not None


def join_lines(parts: Sequence[Lines]) -> Lines:
    """Concatenate lines."""
    if len(parts) == 1:
        return parts[0]
    kinds: dict[Kind, int] = {}
    renamed = []
    for part in parts:
        new = [kinds.setdefault(kind, len(kinds)) for kind in part.kinds]
        renamed.append(np.array(new, np.uint32)[part.kind])
    return Lines(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.at for part in parts]),
        np.concatenate(renamed),
        list(kinds),
        np.concatenate([part.errors for part in parts]),
        [text for part in parts for text in part.texts],
    )


def split_lines(lines: Lines) -> Iterable[Lines]:
    """Split into full chunks and the rest."""
    ends = tiers.full_chunk_ends([len(text) for text in lines.texts])
    for start, end in zip([0, *ends], [*ends, len(lines)], strict=True):
        if start < end:
            yield lines.slice(start, end)


def pack(lines: Lines, *, full: bool) -> tuple[bytes, bytes, bytes, bytes]:
    """Return (kinds, columns, compressed text, text for searching)."""
    used, kind = np.unique(lines.kind, return_inverse=True)
    kind_stats = [_kind_stats(lines, kind == new, lines.kinds[old]) for new, old in enumerate(used)]
    columns = b"".join(
        (
            # Differences of growing numbers are small and repeat, so they compress to a fraction.
            np.diff(lines.ids, prepend=0).astype("<i8").tobytes(),
            np.diff(lines.at, prepend=0).astype("<i8").tobytes(),
            kind.astype("<u4").tobytes(),
            lines.errors.astype(np.uint8).tobytes(),
        )
    )
    text = LINE_SEPARATOR.join(lines.texts)
    level = LEVEL_FULL if full else LEVEL
    compress = zstandard.ZstdCompressor(level).compress
    return msgspec.json.encode(kind_stats), compress(columns), compress(text), text


def _kind_stats(lines: Lines, mine: Any, kind: Kind) -> KindStats:
    wrong = lines.ids[mine & lines.errors]
    ends = (int(wrong[0]), int(wrong[-1])) if len(wrong) else (None, None)
    return KindStats(kind, int(np.count_nonzero(mine)), *ends)


def read_kinds(kinds: bytes) -> list[KindStats]:
    """The kinds of lines in a chunk."""
    return _kinds_decoder.decode(kinds)


@dataclass(frozen=True)
class Columns:
    """All columns of a chunk except the text."""

    ids: Any
    at: Any
    kind: Any
    errors: Any


def read_columns(columns: bytes, count: int) -> Columns:
    """The columns of a chunk with `count` lines."""
    raw = zstandard.ZstdDecompressor().decompress(columns)
    offsets = [count * width for width in (0, 8, 16, 20, 21)]
    return Columns(
        np.cumsum(np.frombuffer(raw[offsets[0] : offsets[1]], "<i8")),
        np.cumsum(np.frombuffer(raw[offsets[1] : offsets[2]], "<i8")),
        np.frombuffer(raw[offsets[2] : offsets[3]], "<u4"),
        np.frombuffer(raw[offsets[3] : offsets[4]], np.uint8).astype(bool),
    )


def read_text(texts: bytes) -> bytes:
    """The text of a chunk, with lines separated by NUL."""
    return zstandard.ZstdDecompressor().decompress(texts)


def unpack(kinds: bytes, columns: bytes, texts: bytes, count: int) -> Lines:
    """The lines of a chunk."""
    unpacked = read_columns(columns, count)
    kind_stats = read_kinds(kinds)
    split = read_text(texts).split(LINE_SEPARATOR)
    return Lines(
        unpacked.ids, unpacked.at, unpacked.kind, [stats.kind for stats in kind_stats], unpacked.errors, split
    )
