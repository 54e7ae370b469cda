"""A view of a state: what is folded into it looks as if it had been folded into the state, which stays."""

import random
from collections import defaultdict

import pytest

from services.kit.overlay import Layer, view_of
from services.kit.records import read_event
from services.kit.roots import PagedTable
from services.kit.rules import every_key
from tests.history.facts import ALL
from tests.history.recording import read
from tests.history.test_history import RECORDED


def same(layer, plain):
    assert list(layer) == list(plain)
    assert list(layer.items()) == list(plain.items())
    assert len(layer) == len(plain)
    assert all((key in layer) == (key in plain) for key in range(30))


@pytest.mark.parametrize("seed", range(50))
def test_a_layer_is_a_dictionary_and_leaves_what_is_below_as_it_was(seed):
    chance = random.Random(seed)
    below = {key: chance.random() for key in chance.sample(range(20), 10)}
    before, plain, layer = dict(below), dict(below), Layer(below)
    for _ in range(60):
        key, what = chance.randrange(25), chance.randrange(4)
        if what == 0:
            assert layer.pop(key, "none") == plain.pop(key, "none")
        elif what == 1:
            assert layer.get(key) == plain.get(key)
        elif what == 2 and key in plain:
            del layer[key], plain[key]
        else:
            layer[key] = plain[key] = chance.random()
        same(layer, plain)
    assert below == before
    with pytest.raises(KeyError):
        del layer[99]
    with pytest.raises(KeyError):
        layer[99]


def test_what_can_be_changed_in_place_is_copied_first():
    below = defaultdict(dict, {1: {"a": 1}})
    layer = Layer(below)
    layer[1]["b"] = 2
    layer[2]["c"] = 3
    assert layer[1] == {"a": 1, "b": 2}
    assert layer[2] == {"c": 3}
    assert below == {1: {"a": 1}}


def test_a_record_that_is_made_is_not_looked_for_in_the_database():
    """Each trial of a search is made in such a view, on the event loop."""
    looked_for = []
    layer = Layer(PagedTable({1: "a"}, looked_for.append))
    layer[2], layer[1] = "b", "c"
    assert (list(layer), len(layer), looked_for) == ([1, 2], 2, [])
    del layer[2]
    assert (list(layer), len(layer), 2 in layer, looked_for) == ([1], 1, False, [2])


@pytest.mark.parametrize("owner", sorted(ALL))
def test_every_service_folds_into_a_view_as_into_its_state(owner):
    """The recorded history, in pieces of forty events: each piece first into a view."""
    rules = ALL[owner]
    state = rules.state()
    events = recorded(rules)
    for start in range(0, len(events), 40):
        view, before = view_of(state), shown(state)
        for event in events[start : start + 40]:
            list(rules.evolve(view, event))
        assert shown(state) == before
        for event in events[start : start + 40]:
            list(rules.evolve(state, event))
        assert shown(view) == shown(state)


def recorded(rules):
    _, streams = read(RECORDED[-1])
    return [
        rules.decode.get(stream, read_event)(message, stream)
        for stream in rules.streams
        for message in streams[stream]
    ]


def shown(state):
    return [(key, getattr(state, key[0])[key[1]]) for key in every_key(state)]
