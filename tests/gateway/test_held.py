"""What experiments hold is kept beside the fold, and is always what looking at each of them would find."""

from collections import Counter
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from det_contracts.events import searcher
from services.catalogue.columns.held import HeldNames, OrderedIds
from tests.gateway import stories as story

CHANGES = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.none() | st.tuples(st.integers(1, 2), st.lists(st.sampled_from("abc"), unique=True).map(tuple)),
    )
)


def change(state, id, held):
    if held is None:
        state.experiments.pop(id, None)
    else:
        state.experiments[id] = SimpleNamespace(id=id, project_id=held[0], labels=held[1])


@given(before=CHANGES, after=CHANGES)
def test_they_follow_every_change(before, after):
    state = SimpleNamespace(experiments={})
    names, ordered = HeldNames(lambda experiment: experiment.labels), OrderedIds()

    def check():
        assert ordered.all(state) == sorted(state.experiments)
        for project in (1, 2):
            mine = (
                experiment for experiment in state.experiments.values() if experiment.project_id == project
            )
            expected = Counter(label for experiment in mine for label in experiment.labels)
            assert names.count(state, project.__eq__) == expected

    for id, held in before:
        change(state, id, held)
    check()
    for id, held in after:
        change(state, id, held)
        for index in (names, ordered):
            index.on_records_changed([("experiments", id), ("trials", id)])
        check()


def test_a_request_looks_at_what_has_changed_alone():
    state, visited = SimpleNamespace(experiments={}), []
    names = HeldNames(lambda experiment: visited.append(experiment.id) or experiment.labels)
    for id in range(1, 101):
        change(state, id, (1, ("a",)))
    assert names.count(state, {1}.__contains__) == {"a": 100}
    visited.clear()
    change(state, 7, (1, ("b",)))
    names.on_records_changed([("experiments", 7)])
    assert names.count(state, {1}.__contains__) == {"a": 99, "b": 1}
    assert visited == [7]


def test_another_state_begins_anew():
    names, ordered = HeldNames(lambda experiment: experiment.labels), OrderedIds()
    for id in (1, 2):
        state = SimpleNamespace(experiments={})
        change(state, id, (1, ("a",)))
        assert ordered.all(state) == [id]
        assert names.count(state, {1}.__contains__) == {"a": 1}


def test_what_is_asked_again_after_changes_is_current(gateway):
    def names_and_rows():
        labels = gateway.get("/api/v1/experiment/labels")["labels"]
        columns = gateway.get("/api/v1/projects/1/columns")["columns"]
        rows = gateway.get("/api/v1/experiments-search")["experiments"]
        hparams = [column["column"] for column in columns if column["column"].startswith("hp.")]
        return labels, hparams, [row["experiment"]["id"] for row in rows]

    gateway.apply(story.created(1, labels=["good"], hyperparameters={"lr": {"type": "const", "val": 0.1}}))
    assert names_and_rows() == (["good"], ["hp.lr"], [1])
    gateway.apply(story.created(2, labels=["bad"], hyperparameters={"depth": {"type": "const", "val": 2}}))
    assert names_and_rows() == (["bad", "good"], ["hp.depth", "hp.lr"], [2, 1])
    gateway.apply(story.created(3, labels=["good"], hyperparameters={}))
    assert names_and_rows() == (["good", "bad"], ["hp.depth", "hp.lr"], [3, 2, 1])


def test_a_configuration_is_shown_with_changes_that_what_was_submitted_lacks(gateway):
    gateway.apply(
        story.created(1), searcher.ExperimentRevised(1, {"checkpoint_storage.save_trial_best": 7}, "s")
    )
    shown = gateway.get("/api/v1/experiments/1")["experiment"]["config"]
    assert shown["checkpoint_storage"]["save_trial_best"] == 7
    assert gateway.backend.catalogue.submission(1).config["checkpoint_storage"]["save_trial_best"] != 7
