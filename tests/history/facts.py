"""What every later version must make of a recorded log: a few facts per service, in plain data.

Only what a user could ask for in any version; fields of the folded records come and go.
"""

from det_contracts import subjects
from det_contracts.envelope import Unknown
from det_contracts.events.searcher import ExperimentDeleted
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit.records import read_event
from services.metrics.app import RULES as METRICS
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.webhooks.app import RULES as WEBHOOKS

ALL = {rules.owner: rules for rules in (SEARCHER, SCHEDULER, METRICS, CHECKPOINTS, WEBHOOKS, GATEWAY)}


def fold(rules, streams):
    """A service's state at the end of a recorded log; fails on events that nobody knows any more."""
    state = rules.state()
    for stream in rules.streams:
        read = rules.decode.get(stream, read_event)
        for message in streams.get(stream, []):
            recorded = read(message, stream)
            assert not isinstance(recorded.event, Unknown), (
                f"message {message.position} of {stream}: {recorded}"
            )
            list(rules.evolve(state, recorded))
    return state


def deleted_of(streams):
    """What was deleted is known to the log alone."""
    events = (read_event(message, subjects.CONTROL).event for message in streams[subjects.CONTROL])
    return {str(event.experiment_id): event.state for event in events if isinstance(event, ExperimentDeleted)}


def facts_of(streams):
    """The facts of a recorded log: `{stream: [Stored, ...]}`."""
    states = {owner: fold(rules, streams) for owner, rules in ALL.items()}
    searcher, checkpoints, gateway = states["searcher"], states["checkpoints"], states["gateway"]
    return {
        "experiments": deleted_of(streams) | {str(e.id): e.state for e in searcher.experiments.values()},
        "trials": {
            str(t.id): [t.state, t.restarts, t.run, t.seq, t.length, t.steps_completed]
            for t in searcher.trials.values()
        },
        "checkpoints": {c.uuid: c.state for c in checkpoints.checkpoints.values()},
        "allocations left": sorted(states["scheduler"].allocations),
        "jobs left": sorted(states["scheduler"].jobs),
        "reported": {
            str(t.id): [t.run, t.decided]
            for t in states["metrics"].trials.values()
            if t.id in searcher.trials
        },
        "shown": {
            str(e.id): [e.name, e.archived, e.best_trial, e.best_metric, e.checkpoints]
            for e in gateway.experiments.values()
        },
        "control": len(streams[subjects.CONTROL]),
    }
