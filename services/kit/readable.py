"""Waiting for a descriptor: a socket, a pipe, or a process (pidfd)."""

from __future__ import annotations

import asyncio


async def wait_until_readable(descriptor: int, within_s: float) -> bool:
    """Wait until a descriptor has something to read, or its other end is closed.

    Args:
        descriptor: Of a pipe, a socket, or a process (`os.pidfd_open`: readable once it has ended).
        within_s: Maximum wait in seconds.

    Returns:
        Whether it is readable; False after the maximum wait. The descriptor stays open.
    """
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        async with asyncio.timeout(within_s):
            await readable.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
    return True
