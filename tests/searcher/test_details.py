"""What small changes of the rules showed that no other test asks for: reasons, drift of a search, grace."""

import msgspec
import pytest

from det_contracts.commands import ChangeExperiment
from det_contracts.events import searcher, trial

SINGLE = {"name": "single", "max_length": 10}
INVALID = "EXITED_REASON_INVALID_HP"


def of(kind, events):
    return [e for e in events if isinstance(e, kind)]


def cancel(searching, action="cancel"):
    searching.fold.rule(ChangeExperiment(experiment_id=1, action=action, user="bob"))
    return searching.decide()


def test_a_failure_on_the_way_out_says_why_it_failed(searching):
    searching.submit(SINGLE)
    cancel(searching)
    (ended,) = of(searcher.TrialEnded, searching.end_run(1, "failed", 3, "exit code 3"))
    assert (ended.state, ended.reason) == ("ERROR", "exit code 3")


def test_an_end_on_the_way_out_says_who_wanted_it(searching):
    searching.submit(SINGLE)
    cancel(searching)
    (ended,) = of(searcher.TrialEnded, searching.end_run(1))
    assert (ended.state, ended.reason) == ("CANCELED", "canceled by bob")


def test_a_lost_worker_goes_before_what_the_script_said(searching):
    searching.submit(SINGLE)
    searching.decisions_after(trial.ExitedEarly(1, 1, INVALID))
    (ended,) = of(searcher.RunEnded, searching.end_run(1, "worker_lost", None, "worker w was lost"))
    assert ended.restarts == 0
    assert ended.reason == "worker w was lost; this does not count as a restart"


@pytest.mark.parametrize("drift", [{"request_id": "another"}, {"seed": 12345}])
def test_history_that_the_search_would_not_repeat_stops_the_fold(searching, drift):
    searching.submit(SINGLE)
    (created,) = of(searcher.TrialCreated, searching.fold.decided)
    with pytest.raises(ValueError, match="not created as"):
        searching.fold.apply(msgspec.structs.replace(created, **drift))


@pytest.mark.parametrize("drift", [{"length": 11}, {"seq": 2}])
def test_an_operation_that_the_search_did_not_ask_for_stops_the_fold(searching, drift):
    searching.submit(SINGLE)
    (set_,) = of(searcher.OperationSet, searching.fold.decided)
    with pytest.raises(ValueError, match="differs from what the search says"):
        searching.fold.apply(msgspec.structs.replace(set_, **drift))


def test_only_who_gave_up_has_little_time_to_leave(searching):
    searching.submit(SINGLE)
    searching.decisions_after(trial.ExitedEarly(1, 1, "EXITED_REASON_USER_REQUESTED_STOP"))
    assert searching.fold.timers.due(searching.state) is None
    searching.submit(SINGLE)
    searching.decisions_after(trial.ExitedEarly(2, 1, INVALID))
    assert searching.fold.timers.due(searching.state) == searching.fold.now + 10


def test_who_gave_up_after_its_run_was_over_is_not_waited_for(searching):
    searching.submit(SINGLE, max_restarts=1)
    cancel(searching, "pause")
    searching.acknowledge(1)
    searching.end_run(1)
    searching.decisions_after(trial.ExitedEarly(1, 1, INVALID))
    assert searching.fold.timers.due(searching.state) is None
