"""A small service whose records are paged by root: items belong to groups."""

from dataclasses import dataclass, field

import msgspec

from det_contracts.events import metrics, searcher, trial
from services.kit.roots import Roots, get_loaded
from services.kit.rules import Rules
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver
from services.kit.sorted_keys import SortedKeys

GROUPS, ITEMS = 6, 30


class Group(msgspec.Struct, frozen=True):
    total: float = 0.0
    over: bool = False
    announced: bool = True


class Item(msgspec.Struct, frozen=True):
    group: int
    count: float = 0.0


@dataclass
class State:
    groups: dict[int, Group] = field(default_factory=dict)
    items: dict[int, Item] = field(default_factory=dict)
    totals: dict[str, Group] = field(default_factory=dict)
    """All together; never leaves."""
    items_of: SortedKeys = field(init=False, repr=False, compare=False, metadata={"derived": True})

    def __post_init__(self):
        self.items_of = SortedKeys((item.group, id) for id, item in self.items.items())

    def put_item(self, id, item):
        if id not in self.items:
            self.items_of.add(item.group, id)
        self.items[id] = item
        yield "items", id

    def put_group(self, id, group):
        self.groups[id] = group
        yield "groups", id


replace = msgspec.structs.replace


def evolve(state, recorded):
    match recorded.event:
        case trial.Progressed(trial_id=id, units=units):
            yield from progressed(state, id, units)
        case trial.PreemptionAcknowledged(trial_id=id, run=other):
            yield from counted_elsewhere(state, id, other)
        case searcher.TrialIdled(trial_id=id) if id in state.groups:
            group = state.groups[id]
            yield from state.put_group(id, replace(group, over=not group.over, announced=False))
        case metrics.Settled(trial_id=id) if id in state.groups:
            yield from state.put_group(id, replace(state.groups[id], announced=True))
        case searcher.ExperimentDeleted(experiment_id=id) if state.groups.pop(id, None) is not None:
            yield "groups", id
            for item in list(state.items_of.ids(id)):
                state.items_of.discard(id, item)
                del state.items[item]
                yield "items", item


def progressed(state, id, units):
    """More of an item, which is made where it is not there; its group is what its number says."""
    item = state.items.get(id) or Item(1 + id % GROUPS)
    yield from state.put_item(id, replace(item, count=item.count + units))
    group = state.groups.get(item.group, Group())
    yield from state.put_group(item.group, replace(group, total=group.total + units))
    everything = state.totals.get("all", Group())
    state.totals["all"] = replace(everything, total=everything.total + units)
    yield "totals", "all"


def counted_elsewhere(state, id, other):
    """A group that the event does not name takes over what the items of another count: all of them."""
    group = state.groups.get(other)
    item = state.items.get(id)
    if group is None or item is None or item.group not in state.groups:
        return
    total = sum(state.items[item_id].count for item_id in state.items_of.ids(item.group))
    yield from state.put_group(other, replace(group, total=group.total + total))


def react(state, key):
    group = state.groups.get(key[1]) if key[0] == "groups" else None
    return (
        [metrics.Settled(trial_id=key[1], reason="asked")]
        if group is not None and not group.announced
        else ()
    )


def of_item(state, id):
    item = get_loaded(state.items, id)
    return None if item is None else str(item.group)


def members(state, root):
    if get_loaded(state.groups, int(root)) is not None:
        yield "groups", int(root)
    yield from (("items", id) for id in state.items_of.ids(int(root)))


def is_over(state, root):
    group = get_loaded(state.groups, int(root))
    return group is not None and group.over


def index(state, keys):
    for table, id in keys:
        if table == "items":
            state.items_of.add(get_loaded(state.items, id).group, id)


def unindex(state, keys):
    for table, id in keys:
        if table == "items":
            state.items_of.discard(get_loaded(state.items, id).group, id)


ROOTS = Roots(
    root_lookups={"groups": lambda state, id: str(id), "items": of_item},
    members=members,
    is_over=is_over,
    index=index,
    unindex=unindex,
    # What `PreemptionAcknowledged` says of a group is not among it: that one is loaded by the fold itself.
    reference_fields={"trial_id": "items", "experiment_id": "groups"},
)


RULES = Rules(owner="toy", state=State, evolve=evolve, react=react, roots=ROOTS)


class Replica:
    def __init__(self, database, log, leads, roots=ROOTS):
        self.leads = leads
        self.saver = DatabaseSaver(database, "toy", State, is_leader=lambda: self.leads, roots=roots)
        self.runner = Runner(RULES, log, self.saver, is_leader=lambda: self.leads)
