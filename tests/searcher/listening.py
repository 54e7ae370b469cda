"""The watch beside the searcher, by a clock that tests move."""

import contextlib
from types import SimpleNamespace

from det_contracts import subjects
from services.searcher.heartbeats import HeartbeatMonitor


class Listener:
    """Hears scripts, and says what the watch would report."""

    def __init__(self, clock):
        self.clock, self.watch = clock, HeartbeatMonitor(clock)

    def hear(self, trial_id, run):
        """A sign of life arrives."""
        message = SimpleNamespace(subject=subjects.script_heartbeat(trial_id), data=str(run).encode())
        with contextlib.suppress(StopIteration):
            # It waits for nothing, so no loop is needed.
            self.watch.on_heartbeat(message).send(None)

    def reports(self, state):
        """What one look of a leading replica leads to."""
        return [*self.watch.silent_runs(state, self.clock()), *self.watch.returned_runs(state)]

    def restart(self, state):
        """Nobody has listened so far."""
        self.watch.restart(state)
