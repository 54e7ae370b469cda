"""What is folded into a view of a state leaves the state as it is, and comes to the same."""

from dataclasses import fields

from services.kit.overlay import view_of
from services.kit.rules import dump
from services.kit.sorted_keys import SortedKeys
from tests.walks.background import Background
from tests.walks.cluster import Cluster
from tests.walks.story import Story

SEEN_THROUGH = ("searcher", "metrics", "checkpoints", "gateway")
COUNT = 5


def whole(state):
    """Records and indexes as plain data."""
    made = {}
    for field in fields(state):
        if "derived" in field.metadata:
            index = getattr(state, field.name)
            plain = list(index) if isinstance(index, SortedKeys) else dict(index.items())
            made[field.name] = plain
    return dump(state) | made


def test_a_story_in_a_view_is_the_same_story_and_leaves_no_trace_below():
    plain, other = Cluster(), Cluster()
    backgrounds = Background(plain, COUNT), Background(other, COUNT)
    below = {owner: other.states[owner] for owner in SEEN_THROUGH}
    before = {owner: whole(state) for owner, state in below.items()}
    for owner, state in below.items():
        other.states[owner] = view_of(state)
    for cluster, background in zip((plain, other), backgrounds, strict=True):
        Story(cluster, background)
    for owner in SEEN_THROUGH:
        assert whole(other.states[owner]) == whole(plain.states[owner]), owner
        assert whole(below[owner]) == before[owner], owner


def test_a_state_from_its_records_alone_has_the_same_indexes():
    cluster = Cluster()
    Story(cluster, Background(cluster, COUNT))
    for owner, state in cluster.states.items():
        names = [field.name for field in fields(state) if "derived" not in field.metadata]
        again = type(state)(**{name: getattr(state, name) for name in names})
        rebuilt, wanted = (
            {name: list(index) for name, index in vars(s).items() if isinstance(index, SortedKeys)}
            for s in (again, state)
        )
        assert rebuilt == wanted, owner
