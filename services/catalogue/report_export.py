"""Exports reports as a table with one row per report and one column per metric."""

from __future__ import annotations

import asyncio
import importlib.util
import io
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from det_contracts import spreadsheet
from det_contracts.problems import Problem, Refused, invalid
from det_contracts.reports import is_training
from services.catalogue.peers import Report

CELLS_AT_ONCE = 20_000
"""Cells that are made in one turn of the event loop: a table may have ten thousands of columns."""
ROW_GROUP_CELLS = 1_000_000
"""Cells of a Parquet row group, which is in memory until it is written."""
ROW_GROUP_BYTES = 32 * 1024 * 1024
MAX_COLUMN_CHUNKS = 200_000
"""Columns of all row groups of a Parquet file. Their description is in memory until the file is complete."""
FIXED_COLUMNS = ("trial_id", "run", "group", "batches", "time")
"""The first columns; `time` is in seconds since the epoch, UTC."""
Pages = AsyncIterator[list[Report]]
Columns = Mapping[str, bool]
"""By metric name: whether all its values are numbers."""


@dataclass(frozen=True)
class ExportFormat:
    """A file format for tables."""

    suffix: str
    media_type: str
    write: Callable[[Columns, Pages], AsyncIterator[bytes]]


def find_format(name: str) -> ExportFormat:
    """The format with this name. Raises `Refused` if it is unknown or its library is not installed."""
    if name not in FORMATS:
        raise invalid(f"format must be one of {', '.join(FORMATS)}, not '{name}'")
    if name == "parquet" and importlib.util.find_spec("pyarrow") is None:
        message = "this gateway cannot write Parquet: pip install 'steadfast[parquet]' there, or ask for csv"
        raise Refused(Problem("unimplemented", message))
    return FORMATS[name]


def metric_columns(summary: Mapping[str, Any], group: str | None) -> Columns:
    """The metrics of one group, or of all groups but profiles, according to a trial's statistics."""
    columns: dict[str, bool] = {}
    for kind, metrics in summary.items():
        for name, statistics in metrics.items() if _is_included(kind, group) else ():
            columns[name] = columns.get(name, True) and statistics["type"] == "number"
    return dict(sorted(columns.items()))


def _is_included(kind: str, group: str | None) -> bool:
    return kind == group if group is not None else is_training(kind)


def _fixed_values(report: Report) -> tuple[Any, ...]:
    return report.trial_id, report.run, report.group, report.steps_completed, report.at


async def _csv(columns: Columns, pages: Pages) -> AsyncIterator[bytes]:
    text = io.StringIO()
    spreadsheet.write(text, [[*FIXED_COLUMNS, *columns]])
    yield _drain(text).encode("utf-8", "replace")
    async for part in _parts(columns, pages):
        rows = ([*_fixed_values(row), *(_cell(row.metrics.get(name)) for name in columns)] for row in part)
        spreadsheet.write(text, rows)
        yield _drain(text).encode("utf-8", "replace")


async def _parts(columns: Columns, pages: Pages) -> Pages:
    """The reports in parts of `CELLS_AT_ONCE`, or of one report, each in a turn of its own."""
    size = max(1, CELLS_AT_ONCE // (len(FIXED_COLUMNS) + len(columns)))
    async for page in pages:
        for start in range(0, len(page), size):
            yield page[start : start + size]
            await asyncio.sleep(0)


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    return msgspec.json.encode(value).decode()


def _drain(text: io.StringIO) -> str:
    content = text.getvalue()
    text.seek(0)
    text.truncate()
    return content


async def _parquet(columns: Columns, pages: Pages) -> AsyncIterator[bytes]:
    """Write Parquet, with numbers as doubles.

    Metrics that have other values, too, are written as JSON text.
    """
    # Here, because it is an optional dependency.
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.float64())
    metrics = [
        (f"metrics.{name}", pa.float64() if numeric else pa.string()) for name, numeric in columns.items()
    ]
    schema = pa.schema([*zip(FIXED_COLUMNS, kinds, strict=True), *metrics])
    sink = _Sink()
    # Not as a context: whoever hangs up while a thread writes must not close it under that thread. What is
    # broken off is closed when the last of the two has let go of it.
    writer = pq.ParquetWriter(sink, schema)
    tables: list[Any] = []
    async for part in _parts(columns, pages):
        fixed = zip(*map(_fixed_values, part), strict=True)
        arrays = [pa.array(values, kind) for values, kind in zip(fixed, kinds, strict=True)]
        for name, numeric in columns.items():
            arrays.append(_array(pa, [report.metrics.get(name) for report in part], numeric))
        tables.append(pa.Table.from_arrays(arrays, schema=schema))
        if _is_row_group(tables):
            await asyncio.to_thread(writer.write_table, pa.concat_tables(tables))
            tables = []
            yield sink.drain()
    if tables:
        await asyncio.to_thread(writer.write_table, pa.concat_tables(tables))
    await asyncio.to_thread(writer.close)
    yield sink.drain()


def _is_row_group(tables: list[Any]) -> bool:
    cells = sum(table.num_rows * table.num_columns for table in tables)
    size: int = sum(table.nbytes for table in tables)
    return cells >= ROW_GROUP_CELLS or size >= ROW_GROUP_BYTES


def check_parquet_size(columns: Columns, reports: int) -> None:
    """Raise `Refused` (400) for a table whose description alone would fill the gateway's memory."""
    row_groups = 1 + reports * (len(FIXED_COLUMNS) + len(columns)) // ROW_GROUP_CELLS
    if row_groups * len(columns) > MAX_COLUMN_CHUNKS:
        raise invalid(
            f"{reports:,} reports of {len(columns):,} metrics are too many for a Parquet file: choose one "
            "group with `group`, or format=csv"
        )


def _array(pa: Any, values: list[Any], numeric: bool) -> Any:
    if numeric:
        return pa.array([_double(value) for value in values], pa.float64())
    return pa.array([None if v is None else msgspec.json.encode(v).decode() for v in values], pa.string())


def _double(value: Any) -> float | None:
    # A report that arrived after the statistics were read may contain anything.
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


class _Sink:
    """A file-like object whose content is taken out while it is being written."""

    closed = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> int:
        """Buffer some bytes."""
        self._chunks.append(bytes(data))
        self._size += len(self._chunks[-1])
        return len(self._chunks[-1])

    def tell(self) -> int:
        """The total number of bytes written."""
        return self._size

    def flush(self) -> None:
        """Nothing to do."""

    def drain(self) -> bytes:
        """Take out what was written since the last call."""
        content, self._chunks = b"".join(self._chunks), []
        return content


CSV = ExportFormat("csv", "text/csv; charset=utf-8", _csv)
PARQUET = ExportFormat("parquet", "application/vnd.apache.parquet", _parquet)
FORMATS = {form.suffix: form for form in (CSV, PARQUET)}
