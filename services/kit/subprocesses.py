"""Starting programs from a task that may be cancelled at any moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """As `asyncio.create_subprocess_exec`; cancelled meanwhile, the program is killed before this ends.

    That one hangs where it is cancelled before the pipes of the program are connected, as it then waits for
    pipes that nobody closes (Python 3.11 to 3.13).

    Raises OSError where the program cannot be started.

    Example:
        `process = await start("sinfo", "--json", stdout=asyncio.subprocess.PIPE)`
    """
    begun = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **options))
    try:
        return await asyncio.shield(begun)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            process = await begun
            # Kills it, and closes our ends of its pipes: what it has started may keep the others open.
            process._transport.close()  # type: ignore[attr-defined]
            await process.wait()
        raise
