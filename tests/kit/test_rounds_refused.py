"""Rounds that the log refuses, or about which it does not answer."""

import asyncio

import pytest

from det_contracts import subjects
from det_contracts.events import gateway, metrics, trial
from det_contracts.limits import EVENT_BYTES
from det_contracts.problems import Refused
from services.kit.log import NotStored, OutcomeUnknown
from services.kit.log_memory import MemoryLog
from tests.fixtures.waiting import until
from tests.kit.test_rounds import HUGE, UNREACTABLE, Number, Raw, answered, call, draft, run, running


def test_what_the_log_cannot_take_is_refused_or_parked_and_others_go_on(monkeypatch):
    # Texts of commands have limits of their own; what is decided may be large nevertheless.
    monkeypatch.setattr("services.kit.runner.bounds.check", lambda command: None)

    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            huge = metrics.Settled(trial_id=1, reason="x" * EVENT_BYTES)
            with pytest.raises(Refused, match=r"metrics\.trial\.settled would be .* bytes in the log"):
                await runner.command(Raw(huge), call())
            for id in (HUGE, UNREACTABLE, 1):
                await log.append(draft(trial.Progressed(id, 1, 1.0), f"stated-{id}"))
            await until(lambda: answered(runner, 1) == 1)
            assert set(runner.decider.parked) == {("accounts", HUGE), ("accounts", UNREACTABLE)}
            assert "bytes in the log" in runner.decider.parked["accounts", HUGE]
            assert "nobody thought of this" in runner.decider.parked["accounts", UNREACTABLE]
            assert (await runner.command(Number(), call()))[1] == UNREACTABLE + 2

    run(work)


def test_what_was_parked_is_looked_at_again_when_an_operator_asks_for_it(monkeypatch):
    async def work():
        log = MemoryLog()
        async with running(log) as runner:
            for id in (HUGE, UNREACTABLE):
                await log.append(draft(trial.Progressed(id, 1, 1.0), f"stated-{id}"))
            await until(lambda: len(runner.decider.parked) == 2)
            monkeypatch.setattr("tests.kit.test_rounds.FAULTY", frozenset())
            # Another owner is meant.
            await log.append(draft(gateway.DecisionsRetried(owner="others", reason="test"), "others"))
            end = len(log.streams[subjects.CONTROL])
            await until(lambda: runner.positions[subjects.CONTROL] >= end)
            assert len(runner.decider.parked) == 2
            again = gateway.DecisionsRetried(owner=runner.rules.owner, reason="test")
            await log.append(draft(again, "again"))
            await until(lambda: answered(runner, UNREACTABLE) == 1)
            await until(lambda: set(runner.decider.parked) == {("accounts", HUGE)})

    run(work)


class Full(MemoryLog):
    """Has no space, for as long as it is said."""

    full = False

    async def append_batch(self, drafts, *, fence):
        if self.full:
            raise NotStored("no space left on device (10077)")
        return await super().append_batch(drafts, fence=fence)


def test_a_full_log_is_reported_at_once_and_tried_again(monkeypatch):
    monkeypatch.setattr("services.kit.decider.REFUSED_RETRY_S", 0.01)

    async def work():
        log = Full()
        async with running(log) as runner:
            log.full = True
            with pytest.raises(Refused, match="no space left") as refused:
                await runner.command(Number(), call(), within_s=60)
            assert refused.value.problem.code == "unavailable"
            await log.append(draft(trial.Progressed(7, 1, 1.0), "stated"))
            await until(lambda: "no space left" in runner.decider.refusal)
            log.full = False
            await until(lambda: answered(runner, 7) == 1)
            assert runner.decider.refusal == ""
            assert (await runner.command(Number(), call()))[1] == 8

    run(work)


class Unsure(MemoryLog):
    """Says nothing of every second batch, and has stored every second one of those."""

    calls = 0

    async def append_batch(self, drafts, *, fence):
        self.calls += 1
        if self.calls % 4 == 1:
            raise OutcomeUnknown("lost on the way there")
        position = await super().append_batch(drafts, fence=fence)
        if self.calls % 4 == 3:
            raise OutcomeUnknown("lost on the way back")
        return position


def test_each_command_of_a_round_of_unknown_outcome_takes_effect_once():
    async def work():
        log = Unsure()
        async with running(log) as runner:
            values = []
            for turn in range(10):
                commands = [runner.command(Number(user=f"u{n % 3}"), call(f"{turn}-{n}")) for n in range(12)]
                values += [value for _, value in await asyncio.gather(*commands)]
            assert sorted(values) == list(range(1, 121))
            assert len(runner.state.accounts) == 120
        assert log.calls > 20

    run(work)
