"""The indexes of states: sorted sets of tuples, and views of them."""

from hypothesis import given
from hypothesis import strategies as st

from services.kit.sorted_keys import SortedKeys

KEYS = st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c"]), st.integers(0, 5))
CHANGES = st.lists(st.tuples(st.booleans(), KEYS), max_size=30)


def change(index, expected, changes):
    """Add and discard, beside the same in a set."""
    for adds, key in changes:
        if adds and key not in expected:
            index.add(*key)
            expected.add(key)
        elif not adds:
            index.discard(*key)
            expected.discard(key)


def agree(index, expected):
    """Whether all that one can ask has the answers that a walk through the set gives."""
    rows = sorted(expected)
    assert list(index) == rows
    assert len(index) == index.count() == len(rows)
    for first in range(4):
        mine = [key for key in rows if key[0] == first]
        assert list(index.scan(first)) == mine
        assert list(index.descending(first)) == mine[::-1]
        assert index.first(first) == (mine[0] if mine else None)
        assert index.count(first) == len(mine)
        assert list(index.up_to(first)) == [key for key in rows if key[0] <= first]
        assert list(index.scan(first, after="a")) == [key for key in mine if key[1] > "a"]
        for second in "abc":
            both = [key for key in mine if key[1] == second]
            assert list(index.ids(first, second)) == [key[2] for key in both]
            assert list(index.ids(first, second, after=2)) == [key[2] for key in both if key[2] > 2]
            assert index.count(first, second) == len(both)
    for key in rows:
        assert key in index
        beside = [other for other in rows if other[0] == key[0]]
        assert list(index.ascending_from(key, 1)) == [other for other in beside if other >= key]
        assert list(index.descending_from(key, 1)) == [other for other in beside if other <= key][::-1]
    assert (9, "a", 0) not in index


@given(CHANGES, CHANGES)
def test_an_index_and_a_view_of_it_say_what_walks_say(changes, more):
    index, expected = SortedKeys(), set()
    change(index, expected, changes)
    agree(index, expected)
    view, expected_in_view = index.layer(), set(expected)
    change(view, expected_in_view, more)
    agree(view, expected_in_view)
    agree(index, expected)


def test_one_tuple_takes_the_place_of_another():
    index = SortedKeys([(1, 2)])
    index.swap((1, 2), (1, 3))
    index.swap(None, (2, 1))
    assert list(index) == [(1, 3), (2, 1)]
    index.swap((2, 1), None)
    index.swap((1, 3), (1, 3))
    assert list(index) == [(1, 3)]


def test_many_are_added_to_one_layer_alone():
    below = SortedKeys([(1, 1)])
    layer = below.layer()
    layer.discard(1, 1)
    layer.update([(1, 1), (2, 2)])
    assert list(layer) == [(1, 1), (2, 2)]
    assert list(below) == list(below.layer()) == [(1, 1)]
