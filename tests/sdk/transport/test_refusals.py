"""A refusal that passes is waited out; one for good is told, and holds up nothing that comes after it."""

import asyncio
import json

import pytest
from nats.errors import Error as NatsError

from det_contracts import subjects
from determined import ClusterInfo, TrialInfo
from determined.transport import bus_thread, refusals
from determined.transport.bus import BusTransport
from determined.transport.bus_thread import BusThread
from determined.transport.protocol import MetricReport, StoredCheckpoint
from determined.transport.refusals import Refused, TooLarge
from services.kit.credentials import trial_inbox
from tests.fixtures.local_cluster import wait_for
from tests.fixtures.script import Script

TRIAL = 7


@pytest.mark.parametrize(
    ("code", "number", "kind"),
    [
        (400, 10054, TooLarge),
        (400, 10097, Refused),  # the header
        (400, 10109, Refused),  # a sealed stream
        (400, 10120, Refused),  # no limits for the account
        (400, 10002, OSError),  # the account is full
        (500, 10047, OSError),  # no storage
        (503, 10023, OSError),  # no resources
        (503, 10077, OSError),  # the stream is full, or the disk
        (503, 10008, OSError),  # no leader
        (500, 10118, OSError),  # offline
        (409, 10158, OSError),  # the same message is being stored just now
        (429, 10167, OSError),  # too many at once
    ],
)
def test_which_answers_are_for_good(code, number, kind):
    error = {"code": code, "err_code": number, "description": "no"}
    assert type(refusals.of_answer("reports.7", error)) is kind


def report(step, size=1):
    return MetricReport("training", step, {"loss": "x" * size})


class Client:
    """A broker that answers by subject: with an error, with silence, or with a place in a stream."""

    max_payload = 8192
    is_closed = False

    def __init__(self, answers):
        self.answers = answers
        self.stored = []

    async def request(self, subject, body, **options):
        answer = next((answer for prefix, answer in self.answers.items() if subject.startswith(prefix)), None)
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            self.stored.append(subject)
        return type("Reply", (), {"data": json.dumps(answer or {"seq": 1}).encode()})

    async def close(self):
        self.is_closed = True


class Thread(BusThread):
    """A thread on such a broker; it follows nothing."""

    def __init__(self, answers):
        super().__init__(["nats://nats:4222"], None, "_INBOX")
        self.client = Client(answers)

    async def _connect(self):
        return self.client

    async def wait_for_news(self, subject, body, within_s, hurry):
        await asyncio.Event().wait()


def transport_on(thread):
    own = TrialInfo(TRIAL, 3, 1, {}, {"searcher": {"metric": "loss"}}, 0, 1, False)
    info = ClusterInfo("http://x", "c", "a", [0], "3.t", "3.t.1", "s", "TRIAL", trial_info=own)
    transport = BusTransport(info, thread)
    transport.start()
    return transport


@pytest.fixture
def on():
    """A function that makes a transport on a broker with these answers."""
    made = []

    def make(**answers):
        made.append(transport_on(Thread(answers)))
        return made[0]

    yield make
    made[0]._thread.stop()


SEALED = {"error": {"code": 400, "err_code": 10109, "description": "invalid operation on sealed stream"}}


@pytest.mark.parametrize(
    ("stored", "field"),
    [
        (StoredCheckpoint("u-1", {}, {"steps_completed": 2**63}), "steps_completed"),
        (StoredCheckpoint("u-1", {"a": 2**60}, {"steps_completed": 1}), "resources"),
        (StoredCheckpoint("u/1", {}, {"steps_completed": 1}), "uuid"),
    ],
)
def test_what_no_reader_could_read_is_an_error_at_once(on, stored, field):
    """Before, it was acknowledged and skipped by all: such a checkpoint never appeared."""
    transport = on()
    with pytest.raises(ValueError, match=rf"checkpoint {stored.uuid} cannot be stored: .*{field}"):
        transport.checkpoint(stored)
    transport.exit_early("USER_REQUESTED_STOP")
    assert len(transport._thread.client.stored) == 1


def test_refused_reports_raise_by_step_and_later_facts_are_stored(on):
    transport = on(reports=SEALED)
    for step in (1, 2, 3):
        transport.report(report(step))
    transport.checkpoint(StoredCheckpoint("u", {}, {"steps_completed": 3}))
    with pytest.raises(RuntimeError) as refused:
        transport.report(report(4))
    assert str(refused.value) == (
        "trial 7, run 1: 3 reports, from training metrics at 1 steps to training metrics at 3 steps are "
        "permanently refused by the cluster: invalid operation on sealed stream (error 10109); "
        "ask the cluster's administrator to check stream REPORTS"
    )
    assert transport._thread.client.stored == ["witness.trial.7"]
    transport.close()


def test_a_fact_that_is_refused_is_an_error_of_its_call(on):
    transport = on(witness=SEALED)
    with pytest.raises(RuntimeError, match="run 1: checkpoint u is permanently refused by the cluster"):
        transport.checkpoint(StoredCheckpoint("u", {}, {"steps_completed": 3}))
    with pytest.raises(RuntimeError, match="the completion of operation 2 is permanently refused"):
        transport.complete(2, 10, 0.5)
    transport.report(report(1))
    transport.close()
    assert transport._thread.client.stored == ["reports.7.metrics"]


def test_a_fact_refused_after_its_call_returned_raises_at_a_later_call(on, monkeypatch):
    monkeypatch.setattr("determined.transport.bus.FACT_S", 0.0)
    transport = on(witness=OSError("away"))
    transport.checkpoint(StoredCheckpoint("u", {}, {"steps_completed": 3}))
    transport._thread.client.answers["witness"] = SEALED
    with pytest.raises(RuntimeError, match="checkpoint u is permanently refused"):
        transport.flush()


class StrictClient(Client):
    """A broker that allows reports alone: of others it says on the side that they are forbidden."""

    def __init__(self, on_error):
        super().__init__({})
        self.on_error = on_error

    async def request(self, subject, body, **options):
        if subject.startswith("reports"):
            return await super().request(subject, body, **options)
        self.stored.append(subject)
        await self.on_error(NatsError(f'nats: permissions violation for publish to "{subject.lower()}"'))
        return await asyncio.Event().wait()


@pytest.fixture
def strict(monkeypatch):
    """A transport on such a broker. No waiting by the clock ends there."""

    async def connect(urls, *, error_cb, **options):
        return StrictClient(error_cb)

    monkeypatch.setattr(bus_thread.nats, "connect", connect)
    thread = BusThread(["nats://nats:4222"], None, "_INBOX")
    transport = transport_on(thread)
    yield transport
    thread.stop()


def ask(transport, subject, within_s=1000.0):
    return transport._thread.submit(transport._thread.ask(subject, b"", within_s)).result(60)


def test_a_request_that_is_forbidden_is_refused_when_the_broker_says_so(strict, caplog):
    for _ in range(2):
        with pytest.raises(Refused, match=r"publishing to ask\.trial\.7\.searcher\.Best"):
            ask(strict, "ask.trial.7.searcher.Best")
    with pytest.raises(RuntimeError, match="credentials of this run do not allow publishing to ask"):
        strict.best_validation()
    client = strict._thread._connected.result()
    # What is forbidden is sent once.
    assert client.stored.count("ask.trial.7.searcher.Best") == 1
    strict.report(report(1))
    strict.flush()
    assert "reports.7.metrics" in client.stored
    assert "cannot reach the cluster" not in caplog.text


def test_after_a_reconnection_a_request_may_be_allowed(strict):
    with pytest.raises(Refused):
        ask(strict, "ask.trial.7.searcher.best")
    strict._thread.soon(strict._thread._note_reconnected)
    client = strict._thread._connected.result()
    with pytest.raises(Refused):
        ask(strict, "ask.trial.7.searcher.best")
    assert client.stored.count("ask.trial.7.searcher.best") == 2


def test_all_refusals_are_reported_at_the_end(on, caplog):
    transport = on(reports=SEALED)
    for step in (1, 2):
        transport._outbox.put(report(step))
        transport._outbox.wait()
    with pytest.raises(RuntimeError, match="metrics at 1 steps are permanently refused"):
        transport.close()
    assert "metrics at 2 steps are permanently refused" in caplog.text


# -- on a real broker


@pytest.fixture
def script(broker, tmp_path):
    return Script(broker, tmp_path)


@pytest.fixture
def connected(script, tmp_path):
    """A function that makes a transport on the real broker, for a trial whose credentials it has."""
    made = []

    def make(of_trial=TRIAL):
        path = tmp_path / "own.creds"
        path.write_text(script.broker.trial_credentials(of_trial))
        made.append(transport_on(BusThread([script.broker.url], str(path), trial_inbox(of_trial))))
        return made[0]

    yield make
    for transport in made:
        transport._thread.stop()


def configured(broker, stream, **change):
    """Change a stream; what it is set to otherwise stays."""

    async def update():
        connection = await broker.connect()
        info = json.loads((await connection.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=60)).data)
        body = json.dumps(info["config"] | change).encode()
        answer = await connection.request(f"$JS.API.STREAM.UPDATE.{stream}", body, timeout=60)
        assert "error" not in json.loads(answer.data), answer.data
        await connection.close()

    asyncio.run(update())


live = pytest.mark.live


@live
@pytest.mark.timeout(120)
def test_what_a_stream_finds_too_large_is_refused_and_the_rest_is_stored(script, connected):
    script.make_streams()
    configured(script.broker, subjects.REPORTS, max_msg_size=2000)
    transport = connected()
    for step, size in ((1, 1), (2, 3000), (3, 1)):
        transport.report(report(step, size))
    with pytest.raises(
        RuntimeError, match="metrics at 2 steps are too large to be sent: message size exceeds"
    ):
        transport.flush()
    assert script.steps() == [1, 3]


@live
@pytest.mark.timeout(120)
def test_what_fits_but_for_its_header_does_not_cost_the_connection(script, connected):
    script.make_streams()
    transport = connected()
    transport.report(report(1))
    transport.flush()
    most = transport._thread._connected.result().max_payload
    for step, size in ((2, most - 300), (3, 1)):
        transport.report(report(step, size))
    with pytest.raises(RuntimeError, match="metrics at 2 steps are too large to be sent: 8,388,"):
        transport.flush()
    assert script.steps() == [1, 3]
    assert transport._thread._connected.result().stats["reconnects"] == 0


@live
@pytest.mark.timeout(120)
def test_a_stream_that_is_full_is_waited_for(script, connected):
    script.make_streams()
    configured(script.broker, subjects.REPORTS, max_msgs=1, discard="new")
    transport = connected()
    transport.report(report(1))
    transport.flush()
    transport.report(report(2))
    wait_for(lambda: "maximum messages exceeded" in transport._thread.trouble, 60, "a full stream")
    assert transport._outbox.unsettled() == "training metrics at 2 steps"
    configured(script.broker, subjects.REPORTS, max_msgs=-1)
    transport.close()
    assert script.steps() == [1, 2]


@live
@pytest.mark.timeout(120)
def test_what_the_credentials_do_not_allow_is_refused(script, connected, monkeypatch):
    # No headers, and longer than this test may last instead of ACK_TIMEOUT_S: the broker never answers what
    # it does not allow, it says so on the side.
    monkeypatch.setattr(BusThread._request, "__defaults__", (None, 1000.0))
    script.make_streams()
    transport = connected(of_trial=8)
    transport.report(report(1))
    with pytest.raises(RuntimeError, match=r"credentials of this run do not allow publishing to reports\.7"):
        transport.flush()
    with pytest.raises(RuntimeError, match="the completion of operation 1 is permanently refused"):
        transport.complete(1, 10, 0.5)


@live
@pytest.mark.timeout(120)
def test_a_stream_that_is_missing_is_waited_for(script, connected):
    transport = connected()
    transport.report(report(1))
    wait_for(lambda: "NoResponders" in transport._thread.trouble, 60, "no stream")
    script.make_streams()
    transport.flush()
    assert script.steps() == [1]
