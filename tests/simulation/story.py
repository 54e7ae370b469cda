"""The report of a failing seed: what happened to the affected object, and around it."""

from det_contracts import subjects
from services.kit.records import read_event
from tests.simulation.facts import Worker

LINES = 70


class Story:
    """Faults and commands, each with its log position."""

    def __init__(self):
        self.lines = []

    def tell(self, position, at, kind, text):
        self.lines.append((position, at, kind, text))


def tell(world, violation, again=""):
    """The failure, its object's events, the faults between them, and how to reproduce it.

    `again` is the command for that if the seed alone does not reproduce it.
    """
    wanted = _ids(violation.event) if getattr(violation, "event", None) is not None else {}
    _widen(wanted, world.ledger)
    events = [(r.position, f"{r.at - world.epoch:9.2f}  {r.actor:<16} {r.event}") for r in _history(world)]
    chosen = [(p, text) for p, text, r in _zip_events(events, world) if not wanted or _about(r.event, wanted)]
    story_lines = [(p, f"{at:9.2f}  ** {kind}: {text}") for p, at, kind, text in world.story.lines]
    lines = [text for _, text in sorted(chosen + story_lines, key=lambda line: line[0])][-LINES:]
    plan = world.plan
    left_out = f" --off {','.join(sorted(plan.off))}" if plan.off else ""
    again = again or f"python -m tests.simulation --first {plan.seed} --seeds 1{left_out}"
    return "\n".join(
        [
            f"seed {plan.seed}: {violation}",
            *(f"  {line}" for line in lines),
            f"  the event: {getattr(violation, 'event', None)}",
            f"again: {again}",
        ]
    )


def _zip_events(events, world):
    for (position, text), recorded in zip(events, _history(world), strict=True):
        yield position, text, recorded


def _history(world):
    for message in world.disk.streams[subjects.CONTROL]:
        yield read_event(message)


NAMES = ("experiment_id", "trial_id", "allocation_id", "worker_id", "task_id")


def _ids(event):
    if isinstance(event, Worker):
        return {"worker_id": {event.id}}
    return {name: {getattr(event, name)} for name in NAMES if getattr(event, name, None) is not None}


def _widen(wanted, ledger):
    """A trial's story includes its allocations, and an allocation's its trial."""
    for id in list(wanted.get("allocation_id", ())):
        allocation = ledger.allocations.get(id)
        if allocation is not None and allocation.trial_id is not None:
            wanted.setdefault("trial_id", set()).add(allocation.trial_id)
    for id in list(wanted.get("trial_id", ())):
        trial = ledger.trials.get(id)
        if trial is not None:
            wanted.setdefault("experiment_id", set()).add(trial.experiment.id)
    trials = wanted.get("trial_id", set())
    for allocation in ledger.allocations.values():
        if allocation.trial_id in trials:
            wanted.setdefault("allocation_id", set()).add(allocation.id)


def _about(event, wanted):
    ids = _ids(event)
    if "trial_id" in wanted and "trial_id" in ids:
        return bool(ids["trial_id"] & wanted["trial_id"])
    return any(ids[name] & wanted.get(name, set()) for name in ids)
