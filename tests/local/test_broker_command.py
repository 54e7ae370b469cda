"""Commands that work on a broker's streams say in one line that no broker answers, and do not wait long."""

import subprocess
import sys

import pytest

from services.kit.broker import free_port

ARGUMENTS = {"skip": ["--position", "3", "--reason", "a test"], "remake": []}


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_an_unreachable_broker_is_reported_in_one_line(name):
    url = f"nats://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", f"services.local.{name}", "--nats", url, *ARGUMENTS[name]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"the broker does not answer: no connection to {url}: ")
    assert "Connect call failed" in line
    assert "once it does" in line
    assert not ended.stdout
