"""Experiments that are over leave the gateway's memory, and every answer about them is what it was."""

import contextlib
import re

import pytest

from det_contracts import subjects
from det_contracts.events import checkpoints, metrics, searcher
from services.kit import pager
from services.kit.roots import get_loaded
from services.kit.snapshot import Snapshot
from services.live.series import Curves
from tests.gateway import stories as story
from tests.gateway.harness import Harness

EXPERIMENTS = 4
LATER = 1_700_010_000.0


def lived(id):
    """An experiment of two trials from its submission to its end, and all that is stated of it."""
    searched = {"lr": {"type": "log", "base": 10, "minval": -4, "maxval": 0}, "depth": id}
    yield story.created(id, hyperparameters=searched, name=f"number {id}", labels=["old"])
    yield searcher.ExperimentActivated(id, "asked")
    for trial in (10 * id, 10 * id + 1):
        yield story.trial_created(trial, id, lr=trial / 100)
        yield from story.running(trial, experiment_id=id)
        for number, steps in enumerate((50, 100), 1):
            yield story.validated(trial, steps, 1 / (trial + steps), number=number)
            yield story.stored(trial, f"u-{trial}-{steps}", steps, id)
        yield story.allocation_ended(trial, id)
        yield story.trial_ended(trial)
        yield metrics.Settled(trial_id=trial, reason="all is judged")
    # Meanwhile nothing of it moves.
    for number in range(3):
        yield searcher.ExperimentRevised(id, {"notes": f"{number}"}, "asked")
    yield searcher.ExperimentEnded(id, "COMPLETED", "all trials are over")


def add_experiments(gateway):
    gateway.apply(story.worker_here())
    for id in range(1, EXPERIMENTS + 1):
        for number, event in enumerate(lived(id)):
            gateway.run(gateway.append(event, at=1_700_000_000.0 + 60 * number))
            if id == 1:
                # One by one: each portion is asked what may leave.
                gateway.settle()
    gateway.settle()
    # One that is not over.
    gateway.apply(story.created(90), searcher.ExperimentActivated(90, "asked"), story.trial_created(900, 90))
    stir(gateway)
    return gateway


def stir(gateway):
    """What is at rest leaves when something moves."""
    for user in ("a", "b", "c"):
        gateway.apply(searcher.ExperimentRevised(90, {"notes": user}, "asked"))


@contextlib.contextmanager
def opened(folder, idle_records):
    """A gateway that keeps so many records of what is over, and has been told all of it."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pager, "MAX_IDLE_RECORDS", idle_records)
        harness = Harness(folder)
    harness.let_in()
    yield add_experiments(harness)
    harness.close()


@pytest.fixture
def stays(tmp_path):
    """A gateway that keeps all of it."""
    with opened(tmp_path / "stays", 10_000) as made:
        yield made


@pytest.fixture
def aged(tmp_path):
    """A gateway from which whatever may leave has left."""
    with opened(tmp_path / "aged", 0) as made:
        yield made


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """One of each, for questions."""
    folder = tmp_path_factory.mktemp("both")
    with opened(folder / "stays", 10_000) as stays, opened(folder / "aged", 0) as aged:
        yield stays, aged


def is_away(gateway, id=1):
    state = gateway.catalogue.state
    return all(
        get_loaded(table, key) is None
        for table, key in (
            (state.submissions, id),
            (state.trials, 10 * id),
            (state.validations, f"{10 * id}@50"),
            (state.checkpoints, f"u-{10 * id}-50"),
            (state.allocations, f"{id}.r{10 * id}.1"),
        )
    )


GOES_ON = re.compile(r'"(duration|runningTime|slotHours)":[0-9]{4,}(\.[0-9]+)?')
"""Of what goes on, which lasts longer with each answer."""
LEAF = '{"kind": "field", "columnName": "%s", "operator": "%s", "value": %s}'
FILTER = '{"filterGroup": {"kind": "group", "conjunction": "and", "children": [%s]}}'
HELD = {"timestamp_after": "2023-11-14T00:00:00Z", "timestamp_before": "2023-11-16T00:00:00Z"}
QUESTIONS = [
    ("/api/v1/experiments", {}),
    ("/api/v1/experiments", {"lean": "true", "sortBy": "SORT_BY_SEARCHER_METRIC_VAL"}),
    ("/api/v1/experiments/1", {}),
    ("/api/v1/experiments/1/trials", {"sortBy": "SORT_BY_BEST_VALIDATION_METRIC"}),
    ("/api/v1/experiments/1/checkpoints", {}),
    ("/api/v1/experiments/1/searcher/best_searcher_validation_metric", {}),
    ("/api/v1/experiments/1/timeline", {}),
    ("/api/v1/experiments-search", {}),
    (
        "/api/v1/experiments-search",
        {"lean": "true", "sort": "hp.lr=desc", "columns": "hp.depth,searcherType"},
    ),
    ("/api/v1/experiments-search", {"filter": FILTER % (LEAF % ("hp.depth", ">", 2))}),
    ("/api/v1/experiments-search", {"filter": FILTER % (LEAF % ("searcherType", "=", '"single"'))}),
    ("/api/v1/experiment/labels", {}),
    ("/api/v1/projects/0/columns", {}),
    ("/api/v1/trials/10", {}),
    ("/api/v1/trials/10/workloads", {}),
    ("/api/v1/trials/11/checkpoints", {}),
    ("/api/v1/checkpoints/u-20-50", {}),
    ("/api/v1/tasks/3.r30", {}),
    ("/api/v1/tasks", {}),
    ("/api/v1/tasks/count", {}),
    ("/api/v1/cluster/use", {}),
    ("/api/v1/cluster/usage", {"days": 366}),
    ("/api/v1/resources/allocation/raw", HELD),
    ("/api/v1/master/logs", {}),
    ("/api/v1/workspaces/1", {}),
]


@pytest.mark.parametrize(("path", "params"), QUESTIONS, ids=lambda argument: str(argument)[:60])
def test_an_answer_is_what_it_was(both, path, params):
    # What the question before has brought leaves again.
    for gateway in both:
        stir(gateway)
    assert [is_away(gateway) for gateway in both] == [False, True]
    answers = [gateway.send("GET", path, params=params) for gateway in both]
    assert [answer.status_code for answer in answers] == [200, 200], answers[1].text
    first, second = (GOES_ON.sub("", answer.text) for answer in answers)
    assert second == first


def test_a_list_of_experiments_brings_nothing_but_what_was_submitted(aged):
    before = aged.runner.pager.roots_loaded
    listed = aged.get("/api/v1/experiments", lean="true")["experiments"]
    assert [experiment["trialIds"] for experiment in listed if experiment["id"] == 2] == [[20, 21]]
    searching = {"sort": "hp.lr=asc", "columns": "metric.loss,searcherType", "lean": "true"}
    assert len(aged.get("/api/v1/experiments-search", **searching)["experiments"]) == EXPERIMENTS + 1
    assert aged.runner.pager.roots_loaded == before
    aged.get("/api/v1/experiments")
    assert aged.runner.pager.roots_loaded == before + EXPERIMENTS


def test_an_experiment_and_a_page_of_its_trials_read_what_they_show(aged, monkeypatch):
    """The experiment may have ten thousand trials, each with validations, checkpoints and runs."""
    kinds = []
    real = Snapshot._decode_row

    def counted(snapshot, kind, id, body):
        kinds.append(kind)
        return real(snapshot, kind, id, body)

    monkeypatch.setattr(Snapshot, "_decode_row", counted)
    assert aged.get("/api/v1/experiments/1")["experiment"]["trialIds"] == [10, 11]
    assert set(kinds) == {"submissions"}
    (shown,) = aged.get("/api/v1/experiments/1/trials", limit=1)["trials"]
    assert shown["id"] == 10
    assert shown["bestCheckpoint"]["uuid"] == "u-10-100"
    assert kinds.count("trials") == 1
    assert set(kinds) <= {"submissions", "trials", "checkpoints", "allocations"}
    assert len(kinds) < 8


def test_a_search_shows_best_trials_without_their_experiments(aged, stays):
    """Of a hundred experiments all would be loaded for one trial each, and others would have to go."""
    before = aged.runner.pager.roots_loaded
    experiments, expected = (
        gateway.get("/api/v1/experiments-search")["experiments"] for gateway in (aged, stays)
    )
    assert aged.runner.pager.roots_loaded == before + EXPERIMENTS
    best = [experiment["bestTrial"] for experiment in experiments]
    assert [trial and trial["id"] for trial in best] == [None, 41, 31, 21, 11]
    assert best == [experiment["bestTrial"] for experiment in expected]
    assert best[1]["bestCheckpoint"]["uuid"] == "u-41-100"


def test_a_user_with_partial_access_sees_runs_without_their_experiments(aged):
    """Whether a run may be seen follows from its experiment's own record, which is always there."""
    brought = aged.runner.pager.roots_loaded
    assert len(aged.get("/api/v1/resources/allocation/raw", **HELD)["resourceEntries"]) == 2 * EXPERIMENTS
    assert aged.runner.pager.roots_loaded == brought


def test_a_script_that_goes_on_reporting_brings_nothing_back(aged):
    assert is_away(aged)
    notified = []
    curves = Curves(aged.journal, lambda: aged.catalogue.state, notified.extend, lambda: None)

    async def notify():
        curves._notify_subjects([subjects.reports(10), subjects.reports(900)])

    aged.run(notify())
    assert notified == ["trial.900.series", "experiment.90.series"]
    assert is_away(aged)


def test_what_happens_to_an_experiment_that_is_away_happens_to_all_of_it(aged):
    aged.apply(checkpoints.MetadataSet("u-10-50", {"a": 1}, "asked"))
    assert aged.get("/api/v1/checkpoints/u-10-50")["checkpoint"]["metadata"]["a"] == 1
    aged.apply(story.deleted("u-10-50"), at=LATER)
    assert aged.get("/api/v1/experiments/1")["experiment"]["checkpointCount"] == 3
    aged.apply(searcher.ExperimentDeleting(2, "asked"))
    aged.apply(searcher.TrialsDeleted(2, (20, 21), ("2.r20", "2.r21"), "asked"))
    aged.apply(searcher.ExperimentDeleted(2, "DELETED", "asked"))
    for path in ("/api/v1/experiments/2", "/api/v1/trials/20", "/api/v1/checkpoints/u-20-50"):
        assert aged.send("GET", path).status_code == 404
    entries = aged.get("/api/v1/resources/allocation/raw", **HELD)["resourceEntries"]
    # What it used stays counted; its number would lead nowhere.
    assert {entry["experimentId"] for entry in entries} == {1, None, 3, 4}
    assert aged.get("/api/v1/trials/30")["trial"]["experimentId"] == 3


def test_what_is_not_over_stays(aged):
    state = aged.catalogue.state
    assert get_loaded(state.trials, 900) is not None
    assert get_loaded(state.submissions, 90) is not None
