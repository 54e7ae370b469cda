"""Population-based training: rounds, children, and who makes place for them."""

import pytest

from services.searcher.methods import (
    Create,
    MethodError,
    Shutdown,
    TrialCreated,
    ValidationCompleted,
    start,
    step,
)
from services.searcher.methods.explore import Explore
from services.searcher.methods.rng import Rng

SPACE = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
POPULATION = {"population_size": 4, "num_rounds": 3, "replace_function": {"truncate_fraction": 0.25}}


@pytest.fixture
def population(driven):
    """`population(**fields)`: four members that have begun their first round, of 300 out of 900."""

    def begin(**fields):
        search = driven("pbt", SPACE, **(POPULATION | fields))
        search.create(0, 1, 2, 3)
        return search

    return begin


def members(search):
    return [search.ids.index(member.request_id) for member in search.search.method.members]


def test_everybody_trains_a_round_and_waits(population):
    search = population()
    assert search.operations == [step for n in range(4) for step in (("create", n), ("train", n, 300))]
    assert [search.report(trial, 0.1 * trial) for trial in (2, 0, 1)] == [[], [], []]


def test_a_child_of_the_best_takes_the_place_of_the_worst(population):
    search = population()
    for trial, metric in enumerate([0.3, 0.1, 0.4, 0.2]):
        last = search.report(trial, metric)
    assert last == [
        ("close", 2),
        *(("train", trial, 600) for trial in (1, 3, 0)),
        ("create", 4),
        ("train", 4, 300),
    ]
    child = search.search.method.members[-1]
    assert child.parent == search.ids[1]
    parent = search.search.method.members[0].hparams
    assert child.inherited == parent != child.hparams


def test_children_count_from_their_own_start_and_everybody_ends_together(population):
    search = population(max_length=1000)
    for trial in range(4):
        search.report(trial, float(trial))
    assert search.operations[4 * 2 :] == [
        ("close", 3),
        *(("train", trial, 666) for trial in (0, 1, 2)),
        ("create", 4),
        ("train", 4, 333),
    ]
    search.create(4)
    for trial, metric in ((4, 0.0), (0, 1.0), (1, 2.0), (2, 3.0)):
        last = search.report(trial, metric)
    assert last == [
        ("close", 2),
        ("train", 4, 667),
        *(("train", trial, 1000) for trial in (0, 1)),
        ("create", 5),
        ("train", 5, 334),
    ]
    search.create(5)
    for trial in (5, 4, 1, 0):
        last = search.report(trial, float(trial))
    assert last == [("close", trial) for trial in (0, 1, 4, 5)]
    for trial in range(6):
        search.close(trial)
    assert search.shutdown == Shutdown(cancel=False, failure=False)


def test_the_order_of_reports_decides_nothing(population):
    metrics = {0: 0.5, 1: 0.5, 2: 0.1, 3: 0.9}
    ends = []
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        search = population()
        for trial in order:
            search.report(trial, metrics[trial])
        ends.append(search.search.method)
    assert ends[0] == ends[1]


def test_larger_is_better(population):
    search = population(smaller_is_better=False)
    for trial in range(4):
        search.report(trial, float(trial))
    assert members(search) == [3, 2, 1, 4]


def test_nothing_is_replaced_when_the_fraction_says_so(population):
    search = population(replace_function={"truncate_fraction": 0})
    for trial in range(4):
        search.report(trial, float(trial))
    assert members(search) == [0, 1, 2, 3]


def test_who_gave_up_is_the_worst_and_is_replaced(population):
    search = population()
    assert search.give_up(0, "ERRORED") == []
    search.report(1, 0.1)
    search.report(2, 0.2)
    assert search.report(3, 0.3)[0] == ("train", 1, 600)
    assert members(search) == [1, 2, 3, 4]


def test_the_population_keeps_its_size_when_many_give_up(population):
    search = population()
    for trial in (0, 1, 2):
        search.give_up(trial, "USER_CANCELED")
    search.report(3, 0.3)
    assert members(search) == [3, 4, 5, 6]
    assert {m.parent for m in search.search.method.members[1:]} == {search.ids[3]}


def test_one_that_waits_and_is_stopped_has_no_children(population):
    search = population()
    search.report(0, 0.0)
    assert search.give_up(0, "USER_REQUESTED_STOP") == []
    for trial in (1, 2, 3):
        search.report(trial, float(trial))
    assert members(search) == [1, 2, 3, 4]
    assert search.search.method.members[-1].parent == search.ids[1]


def test_an_invalid_founder_is_drawn_again(population):
    search = population()
    assert search.give_up(0, "INVALID_HP") == [("create", 4), ("train", 4, 300)]
    assert members(search) == [4, 1, 2, 3]
    assert search.search.method.members[0].parent is None


def test_an_invalid_child_is_made_again_from_its_parent(population):
    search = population()
    for trial in range(4):
        search.report(trial, float(trial))
    search.create(4)
    first = search.search.method.members[-1]
    assert search.give_up(4, "INIT_INVALID_HP") == [("create", 5), ("train", 5, 300)]
    second = search.search.method.members[-1]
    assert (second.parent, second.inherited) == (first.parent, first.inherited)
    assert second.hparams != first.hparams


def test_a_population_that_gave_up_ends_the_search(population):
    search = population()
    for trial in range(4):
        search.give_up(trial, "ERRORED")
    assert search.shutdown == Shutdown(cancel=False, failure=True)


def test_nobody_reports_twice_in_a_round(population):
    search = population()
    search.report(0, 0.0)
    with pytest.raises(MethodError, match="was not requested"):
        search.report(0, 0.0)


def test_children_are_created_with_their_parent(config):
    search, operations = start(config("pbt", **POPULATION), SPACE, 3)
    made = [o for o in operations if isinstance(o, Create)]
    assert [o.parent for o in made] == [None] * 4
    for create in made:
        search, _ = step(search, TrialCreated(create.request_id, create.hparams))
    for number, create in enumerate(made):
        search, operations = step(search, ValidationCompleted(create.request_id, number, 300))
    assert [o.parent for o in operations if isinstance(o, Create)] == [made[0].request_id]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_length": 2}, "nothing to train: raise it, or lower num_rounds"),
        ({"population_size": 5000}, "the most is 1000"),
    ],
)
def test_populations_that_can_not_be(config, fields, message):
    with pytest.raises(MethodError, match=message):
        start(config("pbt", **fields), SPACE, 1)


WIDE = {
    "cat": {"type": "categorical", "vals": ["a", "b", "c"]},
    "const": {"type": "const", "val": 7},
    "double": {"type": "double", "minval": -10.0, "maxval": 10.0},
    "group": {"log": {"type": "log", "base": 10, "minval": -3, "maxval": 0}, "plain": "x"},
    "int": {"type": "int", "minval": 1, "maxval": 100},
    "shrinking": {"type": "log", "base": 0.5, "minval": 1, "maxval": 3},
}
PARENT = {
    "cat": "b",
    "const": 7,
    "double": -5.0,
    "group": {"log": 0.01, "plain": "x"},
    "int": 10,
    "shrinking": 0.25,
}


def test_numbers_are_perturbed_by_the_factor():
    rng, near = Rng.seeded(1), Explore(0.0, 0.2)
    children = [near.child_of(PARENT, WIDE, rng) for _ in range(40)]
    assert {c["double"] for c in children} == {-6.0, -4.0}
    assert {c["int"] for c in children} == {8, 12}
    assert {round(c["group"]["log"], 6) for c in children} == {0.008, 0.012}
    assert {c["shrinking"] for c in children} == {0.3, 0.2}
    assert {(c["cat"], c["const"], c["group"]["plain"]) for c in children} == {("b", 7, "x")}


def test_numbers_stay_in_their_ranges():
    rng, far = Rng.seeded(1), Explore(0.0, 0.9)
    edges = PARENT | {"double": 9.0, "int": 1, "group": {"log": 0.001, "plain": "x"}, "shrinking": 0.5}
    for _ in range(20):
        child = far.child_of(edges, WIDE, rng)
        assert child["double"] in (10.0, pytest.approx(0.9))
        assert child["int"] in (1, 2)
        assert 0.001 <= child["group"]["log"] <= 1
        assert 0.125 <= child["shrinking"] <= 0.5
        assert [type(child[name]) for name in ("double", "int", "shrinking")] == [float, int, float]


def test_values_are_drawn_anew_with_the_given_probability():
    rng = Rng.seeded(1)
    children = [Explore(1.0, 0.2).child_of(PARENT, WIDE, rng) for _ in range(60)]
    assert {c["cat"] for c in children} == {"a", "b", "c"}
    assert len({c["double"] for c in children}) == 60
    some = [Explore(0.5, 0.2).child_of(PARENT, WIDE, rng) for _ in range(200)]
    perturbed_count = sum(c["double"] in (-6.0, -4.0) for c in some)
    assert 70 < perturbed_count < 130
