"""Commands that work on a broker's streams say in one line that no broker answers, and do not wait long."""

import pytest

from services.kit.broker import free_port
from tests.fixtures.service_processes import run_module

ARGUMENTS = {"skip": ["--position", "3", "--reason", "a test"], "remake": []}


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_an_unreachable_broker_is_reported_in_one_line(name):
    url = f"nats://127.0.0.1:{free_port()}"
    ended = run_module(f"services.local.{name}", "--nats", url, *ARGUMENTS[name])
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"the broker does not answer: no connection to {url}: ")
    assert "Connect call failed" in line
    assert "once it does" in line
    assert not ended.stdout
