"""What each start of a service needs is made once, before services are forked."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from services.gateway.app import SERVICE as GATEWAY
from services.gateway.http import server
from services.kit import rules, settings
from services.kit.snapshot import Snapshot
from services.local import fork_server
from services.searcher.app import SERVICE as SEARCHER

PRELOAD = """
import os, sys, threading
from services.local.fork_server import preload
before = len(os.listdir("/proc/self/fd"))
preload(["services.webhooks", "services.nowhere"])
from services.kit import rules
state = sys.modules["services.webhooks.app"].SERVICE.rules.state
made = rules._decoders_of.cache_info().currsize
rules.record_decoders(state)
print(made, rules._decoders_of.cache_info().currsize)
print(threading.active_count(), len(os.listdir("/proc/self/fd")) - before)
"""


@pytest.fixture
def nothing_made():
    for made in (rules._types_of, rules._decoders_of, settings._types_of, server.surface, server._routers):
        made.cache_clear()


def refuse(*_, **__):
    raise AssertionError("made again")


@pytest.mark.usefixtures("nothing_made")
def test_a_prepared_service_makes_nothing_of_it_again(monkeypatch):
    for service in (SEARCHER, GATEWAY):
        service.prepare()
    monkeypatch.setattr(rules, "msgspec", SimpleNamespace(json=SimpleNamespace(Decoder=refuse)))
    monkeypatch.setattr(rules.typing, "get_type_hints", refuse)
    monkeypatch.setattr("fastapi.routing.APIRoute.__init__", refuse)
    for service in (SEARCHER, GATEWAY):
        Snapshot(service.rules.owner, service.rules.state, service.rules.fold_version)
        with pytest.raises(settings.BadSettings, match="whole number"):
            settings.load(service.settings, {"STEADFAST_HEALTH_PORT": "any"})
    server.prepare()


def test_forks_inherit_what_was_made_and_neither_connection_nor_thread():
    ended = subprocess.run([sys.executable, "-c", PRELOAD], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["1", "1", "1", "0"]
    assert "services.nowhere.app cannot be preloaded" in ended.stderr


def test_services_that_cannot_rehearse_leave_the_server_running(capsys):
    broken = SimpleNamespace(
        prepare=lambda: 1 / 0, rules=SimpleNamespace(owner="nobody", state=dict), folder="no-such-folder"
    )
    fork_server._rehearse([broken, SEARCHER])
    reported = capsys.readouterr().err
    assert "division by zero" in reported
    assert reported.count("cannot be rehearsed") == 2
