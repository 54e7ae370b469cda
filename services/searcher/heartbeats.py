"""Listens for signs of life of scripts outside of the cluster; reports who fell silent, and who is back.

Signs of life are no events: the log would grow by them for as long as a script lives. Only that one was
taken for lost, or is back, changes anything; that is commanded from here, and decided by the log alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice

from nats.aio.msg import Msg

from det_contracts import subjects
from services.kit.listening import Listening, report_while_leading
from services.kit.parts import Parts
from services.kit.process_metrics import Reading
from services.kit.since_boot import since_boot
from services.searcher.domain import State
from services.searcher.domain.state import AT_ONCE
from services.searcher.unmanaged import ReportScriptHeard, ReportScriptSilent

LOOK_EVERY_S = 2.0
GAP_S = 60.0
"""Between two looks; after more this process stood still. Patience with scripts is minutes."""
WITHIN_S = 5.0
"""A report that was not ruled on by then is about the past; so is a fold that has not come so far by then."""


class Watch:
    """When the script of each trial was last heard of, by this process's own clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds, those that this host sleeps included."""
        self._clock = clock
        self._heard: dict[int, tuple[int, float]] = {}
        """By trial that the log waits for: the run that was heard last, and when."""
        self._new: dict[int, int] = {}
        """By trial that was heard and not looked at since: the run."""
        self._listening = Listening(GAP_S, clock())

    def begin_again(self, state: State) -> None:
        """Nobody listened until now, or somebody else leads; what nobody waits for is forgotten."""
        self._listening.begin_again(self._clock())
        self._new.clear()
        self._forget(state)

    async def on_beat(self, message: Msg) -> None:
        """A sign of life: `alive.<trial id>`, in it the run."""
        trial_id, run = message.subject.rpartition(".")[2], message.data
        if trial_id.isdecimal() and run.isdigit():
            self._heard[int(trial_id)] = int(run), self._clock()
            self._new[int(trial_id)] = int(run)

    def silent(self, state: State, at: float) -> list[ReportScriptSilent]:
        """Runs that are waited for and were not heard for their patience; asked at each look.

        `at` is the time of day: before the time that the log itself gives a run, nobody asks for it.
        """
        now = self._clock()
        self._listening.look(now)
        return list(islice(self._silent(state, at, now), AT_ONCE))

    def _silent(self, state: State, at: float, now: float) -> Iterable[ReportScriptSilent]:
        for _, id in state.silences.upto(at):
            known = state.trials[id]
            quiet = now - max(self._heard_at(id, known.run), self._listening.since)
            if quiet > known.patience_s:
                yield ReportScriptSilent(id, known.run, quiet)

    def _heard_at(self, trial_id: int, run: int) -> float:
        heard, at = self._heard.get(trial_id, (0, 0.0))
        return at if heard == run else 0.0

    def heard_again(self, state: State) -> list[ReportScriptHeard]:
        """Runs that were heard since the last look and are not waited for: each may count as lost."""
        unexpected = {id: run for id, run in self._new.items() if id not in state.timers}
        some = dict(islice(unexpected.items(), AT_ONCE))
        self._new = {id: run for id, run in unexpected.items() if id not in some}
        self._forget(state)
        return [ReportScriptHeard(id, run) for id, run in some.items()]

    def _forget(self, state: State) -> None:
        for id in self._heard.keys() - state.timers.keys():
            del self._heard[id]

    def readings(self, state: State) -> Iterable[Reading]:
        """How many runs outside of the cluster are waited for, and were heard by this process or not."""
        runs = [(id, state.trials[id].run) for _, id in state.silences]
        heard = sum(1 for id, run in runs if self._heard_at(id, run))
        counted = {("yes",): float(heard), ("no",): float(len(runs) - heard)}
        about = "Runs outside of the cluster that are waited for, by whether this process has heard them"
        yield Reading("outside_runs", about, ("heard",), counted)


async def watch(parts: Parts) -> None:
    """Report scripts that fall silent, and those that are back, for as long as this replica leads."""
    listening = Watch(since_boot)
    parts.measures.read(lambda: listening.readings(parts.runner.state))
    await parts.connection.subscribe(subjects.alive("*"), cb=listening.on_beat)

    def reports(state: State) -> Iterable[tuple[str, ReportScriptSilent | ReportScriptHeard]]:
        for silence in listening.silent(state, time.time()):
            yield f"script-{silence.trial_id}", silence
        for sign in listening.heard_again(state):
            yield f"script-{sign.trial_id}", sign

    await report_while_leading(
        parts,
        every_s=LOOK_EVERY_S,
        within_s=WITHIN_S,
        begin_again=listening.begin_again,
        reports=reports,
    )
