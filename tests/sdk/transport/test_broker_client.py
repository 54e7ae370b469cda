"""The broker's client is loaded without aiohttp, and whoever needs that has it."""

import os
import subprocess
import sys

import pytest

WHAT_IT_NEEDS = "import multidict\nclass ClientSession: made_here = True\n"
"""A stand-in, for the environment may not have it."""


@pytest.fixture
def run(tmp_path):
    """Runs code in an interpreter that finds stand-ins of both libraries first; returns what it printed."""
    (tmp_path / "aiohttp.py").write_text(WHAT_IT_NEEDS)
    (tmp_path / "multidict.py").write_text("")
    path = os.pathsep.join([str(tmp_path), *sys.path])

    def run(code):
        command = [sys.executable, "-c", code]
        environment = os.environ | {"PYTHONPATH": path}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_aiohttp_is_loaded_when_it_is_used(run):
    code = """
import asyncio, sys
from determined.transport import broker_client, bus_thread
from nats.aio import transport
print("aiohttp" in sys.modules, any(isinstance(finder, broker_client._Hidden) for finder in sys.meta_path))

async def use():
    return transport.WebSocketTransport()._client

print(asyncio.run(use()).made_here, "aiohttp" in sys.modules)
"""
    assert run(code) == ["False", "False", "True", "True"]


def test_who_has_loaded_it_keeps_it(run):
    code = """
import aiohttp
from determined.transport import bus_thread
from nats.aio import transport
print(transport.aiohttp is aiohttp)
"""
    assert run(code) == ["True"]


def test_other_threads_find_it_meanwhile(run):
    code = """
import sys, threading
from determined.transport import broker_client

with broker_client._hiding():
    try:
        import aiohttp
    except ImportError:
        print("hidden")
    other = threading.Thread(target=lambda: print(__import__("aiohttp").ClientSession.made_here))
    other.start()
    other.join()
"""
    assert run(code) == ["hidden", "True"]


def test_without_it_the_client_says_so(run, tmp_path):
    (tmp_path / "aiohttp.py").write_text("raise ImportError")
    code = """
from determined.transport import bus_thread
from nats.aio import transport
try:
    transport.WebSocketTransport()._client.post
except ImportError:
    print("refused")
"""
    assert run(code) == ["refused"]
