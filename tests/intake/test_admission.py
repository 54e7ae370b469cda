"""What is let into the log, and what is not: each message by itself."""

import json
from uuid import UUID

import msgspec
import pytest

from det_contracts import checkpoint_ids, codec, subjects
from det_contracts.envelope import Envelope
from det_contracts.events import scheduler, trial, worker
from det_contracts.limits import METRIC_BYTES, PROPERTIES_BYTES, STATED_BYTES, WITNESS_BYTES
from services.intake.admission import NotAdmitted, admit
from services.kit.log import Stored
from services.kit.records import read_event

NOW = 2000.0
STATED_AT = 1000.0
PROGRESS = trial.Progressed(7, 1, 3.0)
EXITED = worker.AllocationExited(worker_id="w1", allocation_id="1.a.1", exit_code=0)


def message(event, subject="witness.trial.7", actor="trial:7", position=5, trace="", **envelope):
    stated = codec.decode_envelope(codec.encode(event, id="mine", actor=actor, at=STATED_AT))
    return Stored(subject, position, msgspec.json.encode(msgspec.structs.replace(stated, **envelope)), trace)


def admitted(stated):
    """What readers of the log make of a message."""
    draft = admit(stated, NOW).draft
    return read_event(Stored(draft.subject, 1, draft.body)), draft


def refused(stated):
    with pytest.raises(NotAdmitted) as refusal:
        admit(stated, NOW)
    return str(refusal.value)


def test_a_fact_comes_under_its_own_subject_with_the_time_of_the_intake():
    recorded, draft = admitted(message(PROGRESS, trace="00-ab-cd-01"))
    assert draft.subject == "control.trial.7.progressed"
    assert (recorded.event, recorded.at, recorded.actor, recorded.witness) == (PROGRESS, NOW, "trial:7", 5)
    assert codec.decode_envelope(draft.body).stated_at == STATED_AT
    assert draft.trace == "00-ab-cd-01"


def test_ids_causes_and_names_are_not_the_senders_to_choose():
    claimed = message(
        PROGRESS, actor="user:admin", id="batch-of-the-searcher-0", cause="its-cause", witness=10**9
    )
    recorded, draft = admitted(claimed)
    assert (recorded.id, recorded.cause, recorded.actor) == ("witness-5", "", "trial:7")
    assert (recorded.witness, draft.id) == (5, "witness-5")


def test_only_the_gateway_says_for_whom_it_speaks():
    recorded, _ = admitted(message(PROGRESS, subjects.witness_by_rest(7), actor="user:ann"))
    assert recorded.actor == "user:ann"
    recorded, _ = admitted(message(EXITED, subjects.witness_of_worker("w1"), actor="user:ann"))
    assert recorded.actor == "worker:w1"


FORGED = {
    "another trial": (trial.Progressed(8, 1, 3.0), subjects.witness_of_trial(7)),
    "another worker": (EXITED, subjects.witness_of_worker("w2")),
    "a worker's fact": (EXITED, subjects.witness_of_trial(7)),
    "a trial's fact": (PROGRESS, subjects.witness_of_worker("7")),
    "a decision": (scheduler.KillRequested("1.a.1", "because"), subjects.witness_of_worker("1.a.1")),
    "what the gateway says": (trial.Heartbeat(7, 1), subjects.witness_of_trial(7)),
    "an own sort": (PROGRESS, "witness.service.7"),
    "further tokens": (PROGRESS, "witness.trial.7.progressed"),
}


@pytest.mark.parametrize(("event", "subject"), FORGED.values(), ids=FORGED)
def test_nobody_states_what_is_not_theirs(event, subject):
    assert refused(message(event, subject))


def test_the_gateway_says_that_a_script_lives():
    recorded, _ = admitted(message(trial.Heartbeat(7, 1), subjects.witness_by_rest(7), actor="user:ann"))
    assert recorded.event == trial.Heartbeat(7, 1)


def test_no_decision_gets_in_as_a_fact():
    decision = Envelope("d", codec.DECISION, 1, "intake", 1.0, "", msgspec.Raw(b"{}"))
    assert refused(Stored(subjects.witness_of_trial(7), 5, msgspec.json.encode(decision)))


@pytest.mark.parametrize("changes", [{"version": 99}, {"name": "trial.unheard_of"}])
def test_what_nobody_could_read_is_not_let_in(changes):
    assert "newer release" in refused(message(PROGRESS, **changes))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff" * 100, b"[" * 100_000, b'{"a":' * 100_000, b"0" * 10_000, b'"' * 9_999],
    ids=["empty", "cut", "no text", "brackets", "braces", "digits", "quotes"],
)
def test_what_is_no_message_is_refused(body):
    assert refused(Stored(subjects.witness_of_trial(7), 5, body))


def test_a_fact_may_be_as_large_as_readers_take_and_no_larger():
    def stored(name):
        fact = trial.CheckpointStored(
            trial_id=7,
            experiment_id=1,
            run=1,
            task_id="1.a",
            allocation_id="1.a.1",
            uuid="u",
            resources={name: 1},
            metadata={},
            steps_completed=1,
        )
        return message(fact)

    frame = len(stored("").body)
    recorded, draft = admitted(stored("x" * (WITNESS_BYTES - frame)))
    assert isinstance(recorded.event, trial.CheckpointStored)
    assert len(draft.body) <= STATED_BYTES
    assert "the limit is" in refused(stored("x" * (STATED_BYTES - frame)))
    assert "too large" in refused(stored("x" * STATED_BYTES))


def test_a_value_may_nest_no_deeper_than_readers_follow():
    def completed(depth):
        metric = 1.0
        for _ in range(depth):
            metric = [metric]
        return message(trial.OperationCompleted(trial_id=7, run=1, seq=1, length=1, metric=metric))

    assert admitted(completed(100))
    assert "too deep" in refused(completed(500))


@pytest.mark.parametrize("trace", ["x" * 1000, "two\nlines", "ümlaut"])
def test_no_header_is_handed_on_that_is_no_trace(trace):
    assert admit(message(PROGRESS, trace=trace), NOW).draft.trace == ""


HERE = worker.WorkerRegistered(
    worker_id="w1",
    instance="i",
    host="node-1",
    session="s",
    pool="default",
    address="10.0.0.1",
    version="1",
    slots=(worker.Slot(0, "cuda", "GPU-1", "A100"), worker.Slot(1, "cuda", "GPU-2", "A100")),
    reads_after=5,
    running=("1.a.1",),
)
BEYOND = {
    "a host of a megabyte": (HERE, {"host": "x" * 2**20}),
    "an address with a NUL": (HERE, {"address": "10.0.0.1\0"}),
    "a pool that no index takes": (HERE, {"pool": "\u6c34" * 3000}),
    "100,000 slots": (HERE, {"slots": tuple(worker.Slot(n, "cpu", f"{n}", "x") for n in range(100_000))}),
    "one slot twice": (HERE, {"slots": (HERE.slots[0], HERE.slots[0])}),
    "a slot with a long name": (HERE, {"slots": (worker.Slot(0, "cuda", "x" * 10_000, "A100"),)}),
    "a slot that no database counts": (HERE, {"slots": (worker.Slot(2**63, "cuda", "x", "A100"),)}),
    "a run with a long name": (HERE, {"running": ("x" * 10_000,)}),
    "a position beyond all": (HERE, {"reads_after": 2**63}),
    "an exit code beyond all": (EXITED, {"exit_code": -(2**70)}),
    "a book": (EXITED, {"message": "x" * 10_001}),
    "an allocation with a NUL": (EXITED, {"allocation_id": "1.a\0.1"}),
}


@pytest.mark.parametrize(("event", "changes"), BEYOND.values(), ids=BEYOND)
def test_what_a_worker_says_has_bounds(event, changes):
    whole = msgspec.structs.replace(event, **changes)
    assert admitted(message(event, subjects.witness_of_worker("w1")))
    # As a hostile worker writes it: the codec of ours would not write every number.
    assert refused(as_written(whole))


def as_written(event):
    kind = codec.kind_of(event)
    data = {name: getattr(event, name) for name in event.__struct_fields__}
    if "slots" in data:
        data["slots"] = [msgspec.structs.asdict(slot) for slot in data["slots"]]
    envelope = json.loads(message(EXITED).body) | {"name": kind.name, "version": kind.version, "data": data}
    return Stored(subjects.witness_of_worker("w1"), 5, json.dumps(envelope).encode())


STORED = trial.CheckpointStored(
    trial_id=7, experiment_id=1, run=1, task_id="t", allocation_id="t.1", uuid="u", resources={}, metadata={},
    steps_completed=1,
)  # fmt: skip
COMPLETED = trial.OperationCompleted(trial_id=7, run=1, seq=1, length=1, metric=0.5)


@pytest.mark.parametrize(
    ("event", "field", "most"),
    [(COMPLETED, "metric", METRIC_BYTES), (STORED, "metadata", PROPERTIES_BYTES)],
    ids=["metric", "metadata"],
)
def test_what_a_script_fills_as_it_likes_has_bounds(event, field, most):
    as_large_as_may_be = {"x": "y" * (most - len('{"x":""}'))}
    good = msgspec.structs.replace(event, **{field: as_large_as_may_be})
    assert admitted(message(good))[0].event == good
    beyond = msgspec.structs.replace(
        event, **{field: as_large_as_may_be | {"x": as_large_as_may_be["x"] + "y"}}
    )
    for subject in (subjects.witness_of_trial(7), subjects.witness_by_rest(7)):
        assert f"{field} has {most + 1:,} bytes of JSON: at most {most:,}" in refused(
            message(beyond, subject)
        )


def checkpoint(uuid, trial_id=7, **changes):
    values = {"run": 1, "task_id": "1.a", "allocation_id": "1.a.1", "resources": {}, "metadata": {}}
    fact = {"trial_id": trial_id, "experiment_id": 1, "uuid": uuid, "steps_completed": 1, **values, **changes}
    return trial.CheckpointStored(**fact)


OWN = checkpoint_ids.make(7, "a-secret")


def test_a_checkpoint_is_registered_by_the_trial_that_made_its_id():
    fact = checkpoint(OWN, secret="a-secret")
    recorded, _ = admitted(message(fact))
    assert recorded.event == fact


@pytest.mark.parametrize("secret", ["", "a-guess", "a-secret"])
@pytest.mark.parametrize("uuid", [OWN, OWN.upper()])
def test_who_sees_an_id_in_the_storage_cannot_register_it(uuid, secret):
    """Before, the first report of an id counted, and the owner's came only after its last byte was stored."""
    stolen = message(checkpoint(uuid, 8, secret=secret), "witness.trial.8", actor="trial:8")
    assert refused(stolen) == f"checkpoint {uuid} is another trial's than 8"


@pytest.mark.parametrize(
    "uuid", ["4a1f0c9e-3b6d-4a51-8c37-0f6f5c1d2e3b", "chosen-freely", "x" * 64, f"{OWN}-2"]
)
def test_ids_of_other_clients_are_registered_as_before(uuid):
    fact = checkpoint(uuid)
    assert admitted(message(fact))[0].event == fact


def test_no_two_ids_are_the_same():
    ids = {
        checkpoint_ids.make(trial_id, secret) for trial_id in range(100) for secret in map(str, range(100))
    }
    assert len(ids) == 10_000
    assert all(UUID(id).version == 8 and str(UUID(id)) == id for id in ids)
