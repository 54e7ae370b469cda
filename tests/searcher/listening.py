"""The watch beside the searcher, by a clock that tests move."""

import contextlib
from types import SimpleNamespace

from det_contracts import subjects
from services.searcher.heartbeats import Watch


class Listener:
    """Hears scripts, and says what the watch would report."""

    def __init__(self, clock):
        self.clock, self.watch = clock, Watch(clock)

    def hear(self, trial_id, run):
        """A sign of life arrives."""
        message = SimpleNamespace(subject=subjects.alive(trial_id), data=str(run).encode())
        with contextlib.suppress(StopIteration):
            # It waits for nothing, so no loop is needed.
            self.watch.on_beat(message).send(None)

    def reports(self, state):
        """What one look of a leading replica leads to."""
        return [*self.watch.silent(state, self.clock()), *self.watch.heard_again(state)]

    def begin_again(self, state):
        """Nobody has listened so far."""
        self.watch.begin_again(state)
