"""Long tables as CSV, made and sent part by part."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from det_contracts import spreadsheet


async def csv_parts(
    columns: Sequence[str], pages: AsyncIterator[Iterable[Iterable[Any]]]
) -> AsyncIterator[bytes]:
    """The header and the first page as CSV, then page after page. No more than one page is in memory."""
    text = io.StringIO()
    spreadsheet.write(text, [columns])
    async for rows in pages:
        spreadsheet.write(text, rows)
        # Python's texts may hold what no UTF-8 can.
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()
    if header_alone := text.getvalue():
        yield header_alone.encode("utf-8", "replace")
