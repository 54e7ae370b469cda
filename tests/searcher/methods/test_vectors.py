"""Search methods against the numbers of `searcher-vectors.json`."""

import json
from collections import deque
from pathlib import Path

import msgspec
import pytest

from services.searcher.methods import (
    Close,
    Create,
    Search,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    ValidateAfter,
    ValidationCompleted,
    progress,
    start,
    step,
)
from services.searcher.methods.adaptive_asha import (
    Tournament,
    bracket_concurrent,
    bracket_rungs,
    bracket_trials,
    rung_count,
)
from services.searcher.methods.asha import AshaSearch
from services.searcher.methods.grid import GridSearch, point_at, point_count
from services.searcher.methods.random import RandomSearch
from services.searcher.methods.ranking import Entry, Ranking
from services.searcher.methods.rng import Rng
from services.searcher.methods.rungs import Rung, rung_lengths
from services.searcher.methods.table import Table

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "searcher-vectors.json").read_text())
VECTORS.pop("_about")
DEFAULTS = {"bracket_rungs": [], "metric": "loss", "max_rungs": 5, "mode": "standard", "stop_once": False}


def test_every_family_of_vectors_is_used():
    source = Path(__file__).read_text()
    assert [key for key in VECTORS if f'"{key}"' not in source] == []


def cases(key):
    vectors = VECTORS[key]
    return vectors["cases"] if isinstance(vectors, dict) else vectors


@pytest.mark.parametrize("case", cases("rung_lengths"))
def test_rung_lengths(case):
    lengths = rung_lengths(case["num_rungs"], case["max_length"], case["divisor"])
    assert lengths == case["rung_lengths_absolute"]


@pytest.mark.parametrize("case", cases("bracket_max_trials"))
def test_trials_per_bracket(case):
    assert bracket_trials(case["max_trials"], case["divisor"], case["bracket_rungs"]) == case["trials"]


@pytest.mark.parametrize("case", cases("bracket_max_concurrent"))
def test_concurrency_per_bracket(case):
    arguments = case["max_concurrent_trials"], case["divisor"], case["bracket_trials"]
    assert bracket_concurrent(*arguments) == case["concurrent"]


@pytest.mark.parametrize("case", cases("rung_count_float_edges"))
def test_rung_count_keeps_the_doubles(case):
    assert rung_count(case["value"], case["divisor"]) == case["truncated_plus_1"]


@pytest.mark.parametrize("case", cases("adaptive_asha"))
def test_adaptive_asha(case):
    config = DEFAULTS | case | {"name": "adaptive_asha"}
    rungs = bracket_rungs({**config, "bracket_rungs": []}, case["max_length"])
    assert rungs == case["bracket_rungs"]
    search, operations = start(config | {"bracket_rungs": []}, {}, 1)
    assert isinstance(search.method, Tournament)
    brackets = search.method.brackets
    assert [b.max_trials for b in brackets] == case["bracket_trials"]
    assert [b.max_concurrent for b in brackets] == case["bracket_concurrent"]
    assert [[r.length for r in b.rungs] for b in brackets] == case["rung_lengths_per_bracket"]
    owners = [search.method.bracket_index(o.request_id) for o in operations if isinstance(o, Create)]
    assert [owners.count(i) for i in range(len(brackets))] == case["initial_trials_per_bracket"]
    assert sum(b.max_trials for b in brackets) == case["total_trials"]


def replay(search, operations, trials):
    """The vectors' harness: a FIFO of operations; returns lengths per trial and the log of operations."""
    queue, order, lengths, log, exited = deque(operations), {}, [], [], set()
    operation_count = 0
    while queue:
        operation = queue.popleft()
        operation_count += 1
        requested = ()
        match operation:
            case Create(id):
                order[id] = len(order)
                lengths.append([])
                log.append(["create", order[id]])
                search, requested = step(search, TrialCreated(id))
            case ValidateAfter(id, length):
                log.append(["validate_after", order[id], length])
                if id in exited:
                    continue
                trial = trials[order[id]]
                lengths[order[id]].append(length)
                if trial.get("exit_at") == len(lengths[order[id]]) - 1:
                    exited.add(id)
                    exit_event = TrialExitedEarly(id, trial.get("reason", "ERRORED"))
                    search, requested = step(search, exit_event)
                else:
                    search, requested = step(search, ValidationCompleted(id, trial["metric"], length))
            case Close(id):
                log.append(["close", order[id]])
                search, requested = step(search, TrialClosed(id))
            case _:
                operation_count -= 1
        encoded = msgspec.json.encode(search)
        search = msgspec.json.decode(encoded, type=Search)
        assert msgspec.json.encode(search) == encoded
        queue.extend(requested)
    return lengths, log, operation_count


@pytest.mark.parametrize("case", cases("fifo_scenarios"), ids=lambda c: c["name"])
def test_fifo_scenarios(case):
    lengths, log, operation_count = replay(*start(DEFAULTS | case["config"], {}, 1), case["trials"])
    assert lengths == [t["expected_lengths"] for t in case["trials"]][: len(lengths)]
    assert len(lengths) == len(case["trials"])
    if "total_ops" in case:
        assert operation_count == case["total_ops"]
    if "operation_log" in case:
        assert log == case["operation_log"]


def test_tournament_of_two_brackets():
    case = VECTORS["tournament"]
    brackets = []
    for sub in case["sub_searches"]:
        search, _ = start(DEFAULTS | sub, {}, 1)
        fresh = tuple(Rung(rung.length) for rung in search.method.rungs)
        brackets.append(msgspec.structs.replace(search.method, rungs=fresh, rung_of=Table(), awaited=Table()))
    rng = Rng.seeded(1)
    method, operations = Tournament(tuple(brackets)).initial(rng)
    search = Search(method, rng.state(), True, requested=len(case["metrics"]))
    lengths, _, _ = replay(search, operations, [{"metric": m} for m in case["metrics"]])
    assert lengths == case["expected_lengths"]


@pytest.mark.parametrize("case", cases("asha_trial_counts"))
def test_asha_trial_counts(case):
    config = DEFAULTS | case | {"name": "async_halving", "smaller_is_better": True}
    metric = case["metric"]
    many = [{"metric": 1.0 if metric.startswith("constant") else float(i)} for i in range(1000)]
    lengths, _, _ = replay(*start(config, {}, 1), many)
    counts = {tuple(c["lengths"]): c["trials"] for c in case["counts"]}
    shapes = [tuple(x) for x in lengths]
    assert {shape: shapes.count(shape) for shape in set(shapes)} == counts


@pytest.mark.parametrize("case", cases("grid"))
def test_grid_points(case):
    space = case["hyperparameters"]
    assert [point_at(space, n) for n in range(point_count(space))] == case["points_in_grid_order"]
    config = {"name": "grid", "max_length": 1, "max_concurrent_trials": 0}
    _, operations = start(config, space, 3)
    made = [o.hparams for o in operations if isinstance(o, Create)]
    assert made == case["points_in_grid_order"][::-1]


@pytest.mark.parametrize("case", cases("grid_counts"))
def test_grid_counts(case):
    space = {
        str(i): {"type": "int", "minval": 0, "maxval": 1000, "count": count}
        for i, count in enumerate(case["counts"])
    }
    assert point_count(space) == case["points"]


@pytest.mark.parametrize(("seed", "words"), VECTORS["rng_raw32"].items())
def test_raw_words(seed, words):
    rng = Rng.seeded(int(seed))
    assert [rng.bits32() for _ in words] == words


def test_bounded_integers():
    rng = Rng.seeded(42)
    values = VECTORS["rng_randint10_seed42"]["values"]
    assert [rng.below(10) for _ in values] == values
    rng = Rng.seeded(999)
    values = VECTORS["rng_randint_2p31_seed999"]["values"]
    assert [rng.below(1 << 31) for _ in values] == values


def test_unit_floats():
    rng = Rng.seeded(42)
    assert [repr(rng.unit()) for _ in VECTORS["rng_unit_seed42"]] == VECTORS["rng_unit_seed42"]


@pytest.mark.parametrize("case", cases("random_search_creates"))
def test_random_search_creates(case):
    config = {"name": "random", "max_length": 1, "max_trials": 3, "max_concurrent_trials": 3}
    _, operations = start(config, case["hyperparameters"], case["experiment_seed"])
    made = [o for o in operations if isinstance(o, Create)]
    trials = [{"request_id": o.request_id, "trial_seed": o.seed, "hparams": o.hparams} for o in made]
    assert trials == case["trials"]


def test_creates_without_hyperparameters():
    case = VECTORS["create_without_hparams"]
    config = {"name": "random", "max_length": 1, "max_trials": 2, "max_concurrent_trials": 0}
    _, operations = start(config, {}, case["experiment_seed"])
    made = [o for o in operations if isinstance(o, Create)]
    assert [{"request_id": o.request_id, "trial_seed": o.seed} for o in made] == case["trials"]


@pytest.mark.parametrize("case", VECTORS["progress"])
def test_progress(case):
    assert progress(searched(case)) == pytest.approx(case["progress"])


def searched(case):
    """A search at the point that a progress vector describes."""
    if case["method"] == "async_halving":
        bracket = AshaSearch.bracket(
            {},
            num_rungs=2,
            max_length=8,
            max_trials=case["max_trials"],
            divisor=4,
            max_concurrent=16,
            stop_once=False,
            smaller_is_better=True,
        )
        entries = Ranking.of(Entry(float(i), str(i)) for i in range(case["rung0_reported"]))
        first = msgspec.structs.replace(bracket.rungs[0], entries=entries)
        method = msgspec.structs.replace(
            bracket,
            rungs=(first, bracket.rungs[1]),
            completed=case.get("trials_closed", 0),
            invalid=case.get("invalid", 0),
        )
        return Search(method, Rng.seeded(1).state(), True)
    if case["method"] == "random":
        method = RandomSearch({}, case["max_length"], case["max_trials"], 0, True)
    else:
        method = GridSearch({}, case["max_length"], 0, case["points"], 0)
    units = Table.of({f"open{i}": u for i, u in enumerate(case["open_progress"])})
    return Search(method, Rng.seeded(1).state(), True, units=units, finished=case["closed"])
