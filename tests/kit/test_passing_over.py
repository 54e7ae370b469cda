"""What a runner does with messages that its service does not fold: all but fold them."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from det_contracts import codec, subjects
from det_contracts.envelope import Envelope
from det_contracts.events import Decision, gateway, metrics, trial
from det_contracts.limits import STATED_BYTES
from services.kit.folds import Fold
from services.kit.log import Draft, Stored
from services.kit.log_memory import MemoryLog
from services.kit.process_metrics import Measures
from services.kit.rules import Rules
from tests.fixtures.waiting import until
from tests.kit.running_runner import running_runner


@dataclass
class State:
    units: dict[int, float] = field(default_factory=dict)


def progressed(state, recorded):
    id = recorded.event.trial_id
    state.units[id] = state.units.get(id, 0.0) + recorded.event.units
    return [("units", id)]


FOLD = Fold({trial.Progressed: progressed})
RULES = Rules(owner="toy", state=State, evolve=FOLD, react=lambda *_: (), reads=FOLD.kinds)
READING_ALL = replace(RULES, reads=None)
SETTLED = metrics.Settled(trial_id=1, reason="r")
STATUS = trial.StatusSet(1, 1, "a status")


def draft(event, *, witness=0, subject="", **changes):
    body = codec.encode(event, id="i", actor="a", at=0.0)
    envelope = codec.decode_envelope(body)
    fields = {name: getattr(envelope, name) for name in envelope.__struct_fields__}
    body = codec.encode_envelope(Envelope(**fields | {"witness": witness} | changes))
    return Draft(subject or codec.subject_of(event), body, "")


UNREADABLE = {
    "of a newer version": draft(SETTLED, version=99),
    "of an unknown name": draft(SETTLED, name="metrics.future.happened"),
    "on the subject of another kind": draft(SETTLED, subject="control.metrics.trial.1.validated"),
    "on the subject of another owner": draft(STATUS, subject="control.metrics.trial.1.settled"),
    "cut off": Draft(codec.subject_of(SETTLED), draft(SETTLED).body[:-20], ""),
    "empty": Draft(codec.subject_of(SETTLED), b"", ""),
    "larger than a script may say": draft(trial.StatusSet(1, 1, "s" * STATED_BYTES)),
    "nested too deep": Draft(codec.subject_of(STATUS), b"[" * 100_000, ""),
}


def log_of(drafts):
    log = MemoryLog()
    for at, message in enumerate(drafts, 1):
        log.streams[subjects.CONTROL].append(Stored(message.subject, at, message.body))
    return log


async def read(rules, drafts):
    """A runner that has folded these messages, and its metrics."""
    log, measures = log_of(drafts), Measures("toy")
    async with running_runner(log, rules, measures=measures) as runner:
        await until(lambda: runner.positions[subjects.CONTROL] == len(drafts))
        await runner.wait_for_position(len(drafts))
    return runner, (await measures.text()).decode()


def lines_of(text, name):
    return [line for line in text.splitlines() if line.startswith(f"steadfast_{name}")]


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_is_counted_all_the_same(what):
    async def work():
        drafts = [draft(trial.Progressed(1, 1, 0.5)), UNREADABLE[what], draft(SETTLED)]
        texts = [(await read(rules, drafts))[1] for rules in (RULES, READING_ALL)]
        counted = [lines_of(text, "events_unknown_total") for text in texts]
        assert counted[0] == counted[1] != []

    asyncio.run(work())


def test_positions_and_counts_are_those_of_all_messages():
    async def work():
        drafts = [draft(SETTLED), draft(trial.Progressed(1, 1, 0.5)), draft(SETTLED), draft(SETTLED)]
        runner, text = await read(RULES, drafts)
        assert runner.state.units == {1: 0.5}
        label = '{owner="toy",stream="CONTROL"}'
        assert f"steadfast_events_folded_total{label} 4.0" in text
        assert f"steadfast_log_position{label} 4.0" in text

    asyncio.run(work())


def test_facts_that_are_passed_over_count_as_admitted():
    """Nothing is late as long as the inbox is not read, and it is read up to the newest fact in the log."""

    async def work():
        runner, _ = await read(RULES, [draft(STATUS, witness=3), draft(STATUS, witness=7), draft(SETTLED)])
        await runner.wait_for_position(7, within_s=5.0, stream=subjects.WITNESS)

    asyncio.run(work())


def test_what_is_about_services_is_heeded_by_each():
    async def work():
        logged = []
        decision = Decision(subjects.INTAKE, 0, 1, "r", 9)
        asks = [gateway.LoggingSet(part="level", value="DEBUG", reason="r"), decision]
        log = log_of(map(draft, asks))
        async with running_runner(log, RULES, apply_logging=logged.append) as runner:
            await until(lambda: logged == asks[:1])
            await runner.wait_for_position(9, within_s=5.0, stream=subjects.WITNESS)

    asyncio.run(work())


def test_no_more_of_it_is_decoded_than_its_envelope(monkeypatch):
    body = draft(SETTLED).body
    monkeypatch.setitem(codec._decoders, "metrics.trial.settled", lambda _: pytest.fail("it was decoded"))
    subject = codec.subject_of(SETTLED)
    assert codec.read_if(frozenset(), subject, body, 1).witness == 0
