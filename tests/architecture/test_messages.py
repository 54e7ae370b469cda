"""Every message is documented, kept readable, and says why."""

import json
import typing
from pathlib import Path

import msgspec
import pytest

from det_contracts import codec, events, subjects
from services.why.event_descriptions import DESCRIBERS, describe
from services.why.history import History
from tests.history.recording import read

GOLDEN = Path(__file__).parents[1] / "golden"
FACTS = {
    "decision",  # leads a batch and says nothing of its own
    "scheduler.allocation.deadline_passed",  # a time that has come
    "scheduler.trial.pause_over",  # another one
    "scheduler.worker.time_passed",  # another one
    "scheduler.pool.retry_due",  # another one
    "metrics.trial.validated",  # what was accepted needs no excuse; what was not, has one
}
OWNERS = ("searcher", "scheduler", "metrics", "checkpoints", "webhooks", "gateway")
RECORDED = sorted((Path(__file__).parents[1] / "history").glob("*.jsonl.gz"))


def is_decision(kind):
    return kind.name.split(".")[0] in OWNERS and kind.name not in FACTS


def told_apart(faults):
    """Each fault on a line of its own."""
    return "\n" + "\n".join(faults)


def test_every_event_is_documented():
    assert codec.kinds()
    faults = [kind.name for kind in codec.kinds() if not (kind.record.__doc__ or "").strip()]
    assert not faults, told_apart(faults)


def test_every_decision_carries_its_reason():
    decisions = [kind for kind in codec.kinds() if is_decision(kind)]
    assert decisions
    faults = [
        f"{kind.name} says not why: add a field `reason: str`, or list it among FACTS"
        for kind in decisions
        if typing.get_type_hints(kind.record).get("reason") is not str
    ]
    assert not faults, told_apart(faults)


def test_the_list_of_facts_is_short_and_true():
    records = {kind.name: kind.record for kind in codec.kinds()}
    assert records.keys() >= FACTS
    assert not [name for name in FACTS if "reason" in typing.get_type_hints(records[name])]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_no_recorded_decision_kept_its_reason_to_itself(path):
    _, streams = read(path)
    silent = set()
    for message in streams[subjects.CONTROL]:
        event = codec.decode(message.body, message.position).event
        kind = codec.kind_of(event)
        if is_decision(kind) and not event.reason.strip():
            silent.add(kind.name)
    assert not silent


def clumsy(kind):
    """What is wrong with the sentence that tells of an event of a kind."""
    event = codec.decode((GOLDEN / f"{kind.name}.v{kind.version}.json").read_bytes(), 1).event
    what = describe(event, History()).what
    return {
        "says too little": len(what.split()) <= 2,
        "has spaces around it": what != what.strip(),
        "tells of None": "None" in what,
    }, what


def test_every_event_has_a_description():
    kinds = [kind for kind in codec.kinds() if kind.record is not events.Decision]
    without = [kind.name for kind in kinds if kind.record not in DESCRIBERS]
    assert not without, "add a sentence to services/why/event_descriptions.py for:" + told_apart(without)
    faults = []
    for kind in kinds:
        wrong, what = clumsy(kind)
        faults += [f"{kind.name} {fault}: {what!r}" for fault, true in wrong.items() if true]
    assert not faults, told_apart(faults)


def test_every_version_of_every_event_stays_readable():
    recorded = {
        GOLDEN / f"{kind.name}.v{version}.json": kind
        for kind in codec.kinds()
        for version in range(1, kind.version + 1)
    }
    missing = [path.name for path in recorded if not path.exists()]
    assert not missing, "run python tests/golden/write_missing.py for:" + told_apart(missing)
    read_as = {path: type(codec.decode(path.read_bytes(), 1).event) for path in recorded}
    faults = [
        f"{path.name} is read as {read_as[path]}"
        for path, kind in recorded.items()
        if read_as[path] is not kind.record
    ]
    assert not faults, told_apart(faults)


def test_no_golden_file_is_left_of_removed_events():
    names = {kind.name for kind in codec.kinds()}
    assert {p.name.rpartition(".v")[0] for p in GOLDEN.glob("*.json")} <= names


def test_old_data_is_brought_up_step_by_step(monkeypatch):
    class Moved(msgspec.Struct, frozen=True):
        thing_id: int
        where: str
        why: str

    kind = codec.Kind("test.thing.moved", 3, "thing_id", Moved, "control.test.thing.", ".moved")
    monkeypatch.setitem(codec._by_name, kind.name, kind)
    monkeypatch.setitem(codec._decoders, kind.name, msgspec.json.Decoder(Moved).decode)
    monkeypatch.setitem(codec._upcasters, (kind.name, 1), lambda d: {"thing_id": d["id"], "where": d["to"]})
    monkeypatch.setitem(codec._upcasters, (kind.name, 2), lambda d: d | {"why": "unknown"})
    old = {"id": "e", "name": kind.name, "version": 1, "actor": "a", "at": 1.0, "cause": ""}
    body = json.dumps(old | {"data": {"id": 4, "to": "there"}}).encode()
    assert codec.decode(body, 9).event == Moved(4, "there", "unknown")


def test_what_a_newer_version_wrote_is_skipped_by_name():
    envelope = {
        "id": "e",
        "name": "future.thing.happened",
        "version": 1,
        "actor": "a",
        "at": 1.0,
        "cause": "",
    }
    recorded = codec.decode(json.dumps(envelope | {"data": {}}).encode(), 9)
    assert type(recorded.event).__name__ == "Unknown"
    newer = envelope | {"name": "searcher.trial.idled", "version": 99, "data": {"anything": 1}}
    assert codec.decode(json.dumps(newer).encode(), 9).event.version == 99


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"id": "e"}'])
def test_damage_names_the_place(body):
    with pytest.raises(codec.BadRecord, match="message 7 of CONTROL"):
        codec.decode(body, 7)


def test_events_are_exported():
    assert events.Decision in {kind.record for kind in codec.kinds()}
