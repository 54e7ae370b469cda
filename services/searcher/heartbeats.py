"""Listens for heartbeats of scripts outside the cluster, and reports silent scripts and returning ones.

Heartbeats are not events: the log would grow for as long as a script lives. Only declaring a script lost, or
finding it again, changes anything; this module sends commands for that, and the log decides.
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
"""Maximum time between two looks, in seconds.

After a longer gap this process was suspended. Scripts have minutes.
"""
WITHIN_S = 5.0
"""A report that was not ruled on within this time is outdated, as is a fold further behind, in seconds."""


class Watch:
    """When the script of each trial was last heard, by this process's own clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds, including time that the host sleeps."""
        self._clock = clock
        self._heard: dict[int, tuple[int, float]] = {}
        """Trial that the log waits for -> the run last heard, and when."""
        self._new: dict[int, int] = {}
        """Trial heard since the last look -> run."""
        self._listening = Listening(GAP_S, clock())

    def begin_again(self, state: State) -> None:
        """Restart the measurement after a gap or a leader change; forget trials that are not waited for."""
        self._listening.begin_again(self._clock())
        self._new.clear()
        self._forget(state)

    async def on_beat(self, message: Msg) -> None:
        """Handle a heartbeat: subject `alive.<trial id>`, payload the run."""
        trial_id, run = message.subject.rpartition(".")[2], message.data
        if trial_id.isdecimal() and run.isdigit():
            self._heard[int(trial_id)] = int(run), self._clock()
            self._new[int(trial_id)] = int(run)

    def silent(self, state: State, at: float) -> list[ReportScriptSilent]:
        """Runs that are waited for and were silent for longer than their patience. Call this at every look.

        `at` is the time of day: a run is never reported before the due time in the log.
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
        """Runs heard since the last look that are not waited for. Each may have been declared lost."""
        unexpected = {id: run for id, run in self._new.items() if id not in state.timers}
        some = dict(islice(unexpected.items(), AT_ONCE))
        self._new = {id: run for id, run in unexpected.items() if id not in some}
        self._forget(state)
        return [ReportScriptHeard(id, run) for id, run in some.items()]

    def _forget(self, state: State) -> None:
        for id in self._heard.keys() - state.timers.keys():
            del self._heard[id]

    def readings(self, state: State) -> Iterable[Reading]:
        """Number of runs outside the cluster that are waited for, by whether this process has heard them."""
        runs = [(id, state.trials[id].run) for _, id in state.silences]
        heard = sum(1 for id, run in runs if self._heard_at(id, run))
        counted = {("yes",): float(heard), ("no",): float(len(runs) - heard)}
        about = "Runs outside of the cluster that are waited for, by whether this process has heard them"
        yield Reading("outside_runs", about, ("heard",), counted)


async def watch(parts: Parts) -> None:
    """Report scripts that fall silent or return, while this replica leads."""
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
