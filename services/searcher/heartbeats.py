"""Listens for heartbeats of scripts outside the cluster, and reports silent scripts and returning ones.

Heartbeats are not events: the log would grow for as long as a script lives. Only declaring a script lost, or
finding it again, changes anything; this module sends commands for that, and the log decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice

from nats.aio.msg import Msg

from det_contracts import ids, subjects
from services.kit.listening import ListeningPeriod, report_while_leading
from services.kit.parts import Parts
from services.kit.process_metrics import Reading
from services.kit.since_boot import since_boot
from services.searcher.domain import State
from services.searcher.domain.state import MAX_TRIALS_PER_PASS
from services.searcher.unmanaged import ReportScriptHeard, ReportScriptSilent

POLL_EVERY_S = 2.0
MAX_GAP_S = 60.0
"""Maximum time between two looks, in seconds.

After a longer gap this process was suspended. Scripts have minutes.
"""
COMMAND_TIMEOUT_S = 5.0
"""A report that was not ruled on within this time is outdated, as is a fold further behind, in seconds."""


class HeartbeatMonitor:
    """When the script of each trial was last heard, by this process's own clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds, including time that the host sleeps."""
        self._clock = clock
        self._last_heartbeats: dict[int, tuple[int, float]] = {}
        """Trial that the log waits for -> the run last heard, and when."""
        self._recent_heartbeats: dict[int, int] = {}
        """Trial heard since the last look -> run."""
        self._listening = ListeningPeriod(MAX_GAP_S, clock())

    def restart(self, state: State) -> None:
        """Restart the measurement after a gap or a leader change; forget trials that are not waited for."""
        self._listening.restart(self._clock())
        self._recent_heartbeats.clear()
        self._forget_ended(state)

    async def on_heartbeat(self, message: Msg) -> None:
        """Handle a heartbeat: subject `alive.<trial id>`, payload the run."""
        trial_id = ids.parse_number(message.subject.rpartition(".")[2])
        run = ids.parse_number(message.data.decode(errors="replace"))
        if trial_id is not None and run is not None:
            self._last_heartbeats[trial_id] = run, self._clock()
            # Anybody may send this for a trial of theirs, so the log decides whether it is about a run that
            # counts.
            self._recent_heartbeats[trial_id] = run

    def silent_runs(self, state: State, at: float) -> list[ReportScriptSilent]:
        """Runs that are waited for and were silent for longer than their patience. Call this at every look.

        `at` is the time of day: a run is never reported before the due time in the log.
        """
        now = self._clock()
        # First: after a gap in which this process was stopped, silence counts from now on, and nothing below
        # may be reported.
        self._listening.record_check(now)
        # A host that goes away may take thousands of scripts along. The others follow two seconds later.
        return list(islice(self._find_silent_runs(state, at, now), MAX_TRIALS_PER_PASS))

    def _find_silent_runs(self, state: State, at: float, now: float) -> Iterable[ReportScriptSilent]:
        for _, id in state.silence_deadlines.up_to(at):
            trial = state.trials[id]
            silent_s = now - max(self._last_heartbeat_at(id, trial.run), self._listening.since)
            if silent_s > trial.patience_s:
                yield ReportScriptSilent(id, trial.run, silent_s)

    def _last_heartbeat_at(self, trial_id: int, run: int) -> float:
        heard_run, at = self._last_heartbeats.get(trial_id, (0, 0.0))
        return at if heard_run == run else 0.0

    def returned_runs(self, state: State) -> list[ReportScriptHeard]:
        """Runs heard since the last look that are not waited for. Each may have been declared lost."""
        not_awaited = {id: run for id, run in self._recent_heartbeats.items() if id not in state.timers}
        some = dict(islice(not_awaited.items(), MAX_TRIALS_PER_PASS))
        self._recent_heartbeats = {id: run for id, run in not_awaited.items() if id not in some}
        self._forget_ended(state)
        return [ReportScriptHeard(id, run) for id, run in some.items()]

    def _forget_ended(self, state: State) -> None:
        for id in self._last_heartbeats.keys() - state.timers.keys():
            del self._last_heartbeats[id]

    def readings(self, state: State) -> Iterable[Reading]:
        """Number of runs outside the cluster that are waited for, by whether this process has heard them."""
        runs = [(id, state.trials[id].run) for _, id in state.silence_deadlines]
        heard = sum(1 for id, run in runs if self._last_heartbeat_at(id, run))
        counted = {("yes",): float(heard), ("no",): float(len(runs) - heard)}
        about = "Runs outside of the cluster that are waited for, by whether this process has heard them"
        yield Reading("outside_runs", about, ("heard",), counted)


async def monitor_heartbeats(parts: Parts) -> None:
    """Report scripts that fall silent or return, while this replica leads."""
    monitor = HeartbeatMonitor(since_boot)
    parts.measures.register(lambda: monitor.readings(parts.runner.state))
    await parts.connection.subscribe(subjects.script_heartbeat("*"), cb=monitor.on_heartbeat)

    def reports(state: State) -> Iterable[tuple[str, ReportScriptSilent | ReportScriptHeard]]:
        for silence in monitor.silent_runs(state, time.time()):
            yield f"script-{silence.trial_id}", silence
        for returned in monitor.returned_runs(state):
            yield f"script-{returned.trial_id}", returned

    await report_while_leading(
        parts,
        every_s=POLL_EVERY_S,
        within_s=COMMAND_TIMEOUT_S,
        restart=monitor.restart,
        reports=reports,
    )
