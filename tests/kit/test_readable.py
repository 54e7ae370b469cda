"""Waiting for a descriptor, which may be closed or silent."""

import asyncio
import os
import subprocess
import sys

import pytest

from services.kit.readable import wait_until_readable


@pytest.fixture
def pipe():
    read, write = os.pipe()
    ends = {read, write}
    yield read, write, lambda end: (ends.discard(end), os.close(end))
    for end in ends:
        os.close(end)


def test_what_comes_is_waited_for(pipe):
    read, write, _ = pipe

    async def work():
        waiting = asyncio.ensure_future(wait_until_readable(read, 60))
        await asyncio.sleep(0)
        os.write(write, b"x")
        assert await waiting
        # It stays there for the caller, who may wait once more.
        assert await wait_until_readable(read, 60)

    asyncio.run(work())
    assert os.read(read, 1) == b"x"


def test_a_closed_pipe_becomes_readable(pipe):
    read, write, close = pipe
    close(write)
    assert asyncio.run(wait_until_readable(read, 60))


def test_silence_ends_after_its_time_and_leaves_the_descriptor_alone(pipe):
    read, write, _ = pipe
    assert not asyncio.run(wait_until_readable(read, 0.01))
    os.write(write, b"x")
    assert asyncio.run(wait_until_readable(read, 60))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system knows processes by numbers alone")
def test_a_process_that_ends_becomes_readable():
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    watched = os.pidfd_open(child.pid)
    try:
        assert asyncio.run(wait_until_readable(watched, 60))
    finally:
        os.close(watched)
        child.wait()
