"""A cluster that was started to end with another process does so, however that process ends."""

import asyncio
import subprocess
import sys

from services.local.supervisor import call_when_ended


def sleeping():
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


async def heard_of(pid, then=lambda: None):
    """Wait until the end of a process is noticed."""
    noticed = asyncio.Event()
    with call_when_ended(pid, noticed.set):
        assert not noticed.is_set()
        then()
        async with asyncio.timeout(60):
            await noticed.wait()


def test_a_process_that_is_killed_is_noticed():
    with sleeping() as watched:
        asyncio.run(heard_of(watched.pid, watched.kill))


def test_a_process_that_is_gone_is_noticed_at_once():
    with sleeping() as watched:
        watched.kill()

    async def heard():
        noticed = asyncio.Event()
        with call_when_ended(watched.pid, noticed.set):
            assert noticed.is_set()

    asyncio.run(heard())


def test_none_is_watched_without_a_number():
    async def unheard():
        with call_when_ended(0, lambda: 1 / 0):
            await asyncio.sleep(0)

    asyncio.run(unheard())
