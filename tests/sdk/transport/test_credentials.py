"""Credentials end; a script takes up the new ones before that, and nothing that it says is lost or waits."""

import time

import pytest

from determined import ClusterInfo, TrialInfo
from determined.transport import bus_thread
from determined.transport.bus import BusTransport
from determined.transport.bus_thread import BusThread
from determined.transport.protocol import MetricReport
from services.kit.credentials import trial_inbox
from tests.fixtures.local_cluster import patience, wait_for
from tests.fixtures.script import TRIAL_ID, Script

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
REPORTS = 80
"""So many are made while the first credentials are valid, however long that is."""


@pytest.fixture
def script(broker, tmp_path):
    made = Script(broker, tmp_path)
    made.make_streams()
    return made


@pytest.fixture
def valid_s():
    """The life of the first credentials: a busy machine takes longer to connect, and to connect anew."""
    return 4.0 * patience()


@pytest.fixture
def transport(script, valid_s, tmp_path, monkeypatch):
    monkeypatch.setattr(bus_thread, "CREDENTIALS_EVERY_S", 0.05)
    path = tmp_path / "own.creds"
    path.write_text(script.broker.trial_credentials(TRIAL_ID, valid_s=valid_s))
    own = TrialInfo(TRIAL_ID, 3, 1, {}, {"searcher": {"metric": "loss"}}, 0, 1, False)
    info = ClusterInfo("http://x", "c", "a", [0], "3.t", "3.t.1", "s", "TRIAL", trial_info=own)
    made = BusTransport(info, BusThread([script.broker.url], str(path), trial_inbox(TRIAL_ID)))
    made.start()
    yield made, path
    made._thread.stop()


def report(transport, step):
    transport.report(MetricReport("training", step, {"loss": 1.0}))


def test_new_credentials_are_taken_up_before_the_old_ones_end(script, transport, valid_s):
    transport, path = transport
    ends = time.time() + valid_s
    report(transport, 1)
    transport.flush()
    client = transport._thread._connected.result()
    path.write_text(script.broker.trial_credentials(TRIAL_ID, valid_s=600))
    wait_for(lambda: client.stats["reconnects"] == 1, 60, "another connection")
    step = 2
    while time.time() < ends + 1.0:
        report(transport, step)
        transport.flush()
        step += 1
        time.sleep(valid_s / REPORTS)
    # The same client all the time: it was never shown the door.
    assert transport._thread._connected.result() is client
    assert client.is_connected
    assert script.steps() == list(range(1, step))


def test_who_comes_too_late_says_all_of_it_when_there_are_new_ones(script, transport):
    transport, path = transport
    report(transport, 1)
    transport.flush()
    client = transport._thread._connected.result()
    wait_for(lambda: client.is_closed, 60, "the end of the credentials")
    report(transport, 2)
    wait_for(lambda: transport._thread.trouble, 60, "somebody to notice")
    path.write_text(script.broker.trial_credentials(TRIAL_ID, valid_s=600))
    transport.flush()
    assert script.steps() == [1, 2]
