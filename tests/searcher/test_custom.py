"""A user's own search method: events queue up, posts answer them (searchers spec, section 8)."""

import pytest

from det_contracts.commands import ChangeExperiment, PostOperations
from det_contracts.custom_search import CloseTrial, CreateTrial, SetProgress, ShutDown, TrainTo
from det_contracts.events import searcher, trial
from det_contracts.problems import Refused
from det_contracts.queries import PreviewSearch, SearcherEvents, SearchProgress
from services.searcher.preview import preview_search
from services.searcher.queries import ANSWERS

CUSTOM = {"name": "custom"}
A, B = CreateTrial("a", {"lr": 1}), CreateTrial("b", {"lr": 2})


@pytest.fixture
def custom(searching):
    searching.submit(CUSTOM)
    return searching


def events(searching):
    """Ids and kinds of what waits for an answer."""
    answer = ANSWERS[SearcherEvents](searching.state, SearcherEvents(1))
    return [(entry["id"], entry["event"]["type"]) for entry in answer["events"]]


def post(searching, by, *operations):
    command = PostOperations(experiment_id=1, operations=operations, triggered_by=by, user="ann")
    searching.fold.rule(command)
    return searching.decide()


def test_it_begins_by_asking(custom):
    assert events(custom) == [(1, "initial_operations")]
    assert custom.state.trials == {}


def test_a_post_answers_its_event_and_those_before(custom):
    decided = post(custom, 1, A, TrainTo("a", 5), SetProgress(0.25))
    (made,) = [e for e in decided if isinstance(e, searcher.TrialCreated)]
    assert (made.request_id, made.seed, made.hparams) == ("a", 42, {"lr": 1})
    assert [e.length for e in decided if isinstance(e, searcher.OperationSet)] == [5]
    assert events(custom) == [(2, "trial_created")]
    assert ANSWERS[SearchProgress](custom.state, SearchProgress([1])) == {"1": 0.25}


def test_a_whole_search(custom):
    post(custom, 1, A, TrainTo("a", 5))
    custom.complete(1, metric={"any": ["json", 1]})
    assert events(custom) == [(2, "trial_created"), (3, "validation_completed")]
    event = ANSWERS[SearcherEvents](custom.state, SearcherEvents(1))["events"][1]["event"]
    assert (event["metric"], event["length"]) == ({"any": ["json", 1]}, 5)
    post(custom, 3, TrainTo("a", 9))
    custom.complete(1, metric=0.5)
    post(custom, 4, CloseTrial("a"))
    custom.acknowledge(1)
    custom.end_run(1)
    assert events(custom) == [(5, "trial_closed")]
    assert custom.state.experiments[1].state == "ACTIVE"
    post(custom, 5, ShutDown())
    assert custom.state.experiments[1].state == "COMPLETED"


def test_a_repeated_post_has_no_effect(custom):
    post(custom, 1, A)
    before = custom.state.searches[1]
    with pytest.raises(Refused, match="event 1 not found"):
        post(custom, 1, A)
    with pytest.raises(Refused, match="event 99 not found"):
        post(custom, 99, B)
    assert custom.state.searches[1] == before


def test_early_exits_and_progress_are_passed_to_a_custom_search(custom):
    post(custom, 1, A, B, TrainTo("a", 5), TrainTo("b", 5))
    for units in (1.0, 2.0, 3.0):
        custom.decisions_after(trial.Progressed(1, 1, units))
    custom.decisions_after(trial.ExitedEarly(1, 1, "EXITED_REASON_INVALID_HP"))
    custom.end_run(1)
    assert events(custom) == [
        (2, "trial_created"),
        (3, "trial_created"),
        (4, "trial_progress"),
        (5, "trial_progress"),
        (6, "trial_progress"),
        (7, "trial_exited_early"),
        (8, "trial_closed"),
    ]


def test_of_progress_that_nobody_reads_the_newest_stays(custom, monkeypatch):
    monkeypatch.setattr("services.searcher.methods.custom.MERGE_PROGRESS_FROM", 10)
    post(custom, 1, A, B, TrainTo("a", 500), TrainTo("b", 500))
    for units in range(100):
        custom.decisions_after(trial.Progressed(1, 1, float(units)))
    waiting = events(custom)
    assert len(waiting) == 10
    assert waiting[-1] == (103, "trial_progress")


def test_work_for_a_trial_that_ended_meanwhile_is_dropped(custom):
    post(custom, 1, A, TrainTo("a", 5))
    custom.decisions_after(trial.ExitedEarly(1, 1, "EXITED_REASON_INVALID_HP"))
    custom.end_run(1)
    post(custom, 2, TrainTo("a", 9), CloseTrial("a"), B)
    assert custom.state.trials[1].length == 5
    assert custom.state.trials[2].request_id == "b"


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ((TrainTo("x", 5),), "trial x not found"),
        ((CloseTrial("x"),), "trial x not found"),
        ((A, A), "trial a already exists"),
        ((CreateTrial("old", {}),), "trial old already exists"),
        ((CreateTrial("not a token", {}),), "letters, digits"),
        ((CreateTrial("gc-1", {}),), "does not begin with 'gc-'"),
        ((A, TrainTo("a", 0)), "length must be at least 1, not 0"),
        ((A, TrainTo("a", 3), TrainTo("a", 4)), "has an operation that is not completed"),
        ((TrainTo("old", 9),), "has an operation that is not completed"),
        ((A, CloseTrial("a"), TrainTo("a", 3)), "trial a is closed"),
        ((ShutDown(), A), "must be the last"),
        ((SetProgress(2.0),), "progress must be from 0 to 1"),
        ((SetProgress(float("nan")),), "progress must be from 0 to 1"),
    ],
)
def test_what_cannot_be_done_is_refused_whole(custom, operations, message):
    post(custom, 1, CreateTrial("old", {}), TrainTo("old", 5))
    before = custom.state.searches[1], dict(custom.state.trials), events(custom)
    with pytest.raises(Refused, match=message):
        post(custom, 2, B, *operations)
    assert (custom.state.searches[1], custom.state.trials, events(custom)) == before


def test_only_custom_searches_are_asked(searching):
    searching.submit({"name": "single", "max_length": 1})
    with pytest.raises(Refused, match="the searcher of experiment 1 is not 'custom'"):
        post(searching, 1)
    with pytest.raises(Refused, match="experiment '9' not found"):
        ANSWERS[SearcherEvents](searching.state, SearcherEvents(9))


def test_a_search_that_is_stopping_takes_nothing(custom):
    post(custom, 1, A, TrainTo("a", 5))
    custom.fold.rule(ChangeExperiment(experiment_id=1, action="cancel", user="bob"))
    custom.decide()
    with pytest.raises(Refused, match="incompatible state STOPPING_CANCELED"):
        post(custom, 2, B)


def test_a_client_may_answer_what_it_heard_before_its_method_shut_the_search_down(custom):
    """The published client of 0.25 answers each event of a list, and ends with an error if one is refused."""
    post(custom, 1, A, TrainTo("a", 5), B, TrainTo("b", 5))
    custom.complete(1, metric=0.1)
    custom.complete(2, metric=0.2)
    received = [id for id, _ in events(custom)]
    post(custom, received[-2], ShutDown())
    assert custom.state.experiments[1].state == "STOPPING_COMPLETED"
    assert post(custom, received[-1], TrainTo("b", 9), SetProgress(0.5)) == []
    custom.end_run(1)
    custom.end_run(2)
    assert custom.state.experiments[1].state == "COMPLETED"
    assert post(custom, received[-1], SetProgress(0.5)) == []


def test_it_has_no_preview():
    config = {"searcher": {"name": "custom"}}
    with pytest.raises(Refused, match="your own code"):
        preview_search(PreviewSearch(config))
