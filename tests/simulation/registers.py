"""What clients can read, as registers: every value with the log position from which it holds.

The log is a total order, so reads are linearizable if each returns the value at its read position, and that
position is not before anything answered before the read began.
"""

from bisect import bisect_left, bisect_right

from det_contracts.events import gateway, searcher
from tests.simulation.facts import History


class Registers:
    """Values over the log, by (kind, id)."""

    def __init__(self):
        self._histories = {}
        self._places = []
        """Positions at which workspaces changed."""
        self.log_end = {}
        """Trial to the end of LOGS at the time when it ended."""

    def take(self, recorded, end_of_logs):
        """Record one event of CONTROL."""
        event, position = recorded.event, recorded.position
        recorder = _RECORDERS.get(type(event))
        if recorder is not None:
            key, value = recorder(event)
            if value is not None:
                self._histories.setdefault(key, History(None)).add(position, value)
        if isinstance(event, gateway.WorkspaceSet | gateway.WorkspaceRemoved):
            self._places.append(position)
        if isinstance(event, searcher.TrialEnded):
            self.log_end[event.trial_id] = end_of_logs

    def keys(self, kind):
        """Ids of which something is known."""
        return [id for stored_kind, id in self._histories if stored_kind == kind]

    def at(self, kind, id, position):
        """The value at a position; None before the first one."""
        history = self._histories.get((kind, id))
        return history.at(position) if history else None

    def between(self, kind, id, first, last):
        """All values from one position to another."""
        history = self._histories.get((kind, id))
        return {history.at(first), *history.since(first, last)} if history else {None}

    def places_changed(self, after, upto):
        """Whether a workspace changed after one position, up to another."""
        return bisect_right(self._places, upto) > bisect_left(self._places, after + 1)


def _state(value=None):
    def recorder(event):
        return ("state", event.experiment_id), value or getattr(event, "to", None) or event.state

    return recorder


_RECORDERS = {
    gateway.WorkspaceSet: lambda e: (("workspace", e.workspace_id), e.name),
    gateway.WorkspaceRemoved: lambda e: (("workspace", e.workspace_id), "gone"),
    searcher.ExperimentCreated: lambda e: (("state", e.experiment_id), "PAUSED"),
    searcher.ExperimentRevised: lambda e: (("name", e.experiment_id), e.changes.get("name")),
    searcher.ExperimentActivated: _state("ACTIVE"),
    searcher.ExperimentPaused: _state("PAUSED"),
    searcher.ExperimentStopping: _state(),
    searcher.ExperimentEnded: _state(),
    searcher.ExperimentDeleting: _state("DELETING"),
    searcher.ExperimentDeleted: _state(),
}
