"""Starts programs from tasks that may be cancelled at any moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any


async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """Like `asyncio.create_subprocess_exec`, but if cancelled, kills the program before returning.

    The original hangs if it is cancelled before the program's pipes are connected, because it then waits for
    pipes that are never closed (Python 3.11 to 3.13).

    Raises OSError if the program cannot be started.

    Example:
        `process = await start("sinfo", "--json", stdout=asyncio.subprocess.PIPE)`
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            process = await starting
            # Kills it and closes our ends of its pipes; its own children may keep the other ends open.
            process._transport.close()  # type: ignore[attr-defined]
            await process.wait()
        raise
