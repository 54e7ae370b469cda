"""The registry, and what happens at the end of an experiment, in messages."""

import msgspec
import pytest

from det_contracts import ids
from det_contracts.events import checkpoints, metrics, scheduler, searcher, trial
from det_contracts.problems import Refused
from det_contracts.queries import Checkpoints
from services.checkpoints import react as rules
from services.checkpoints.app import RULES
from services.checkpoints.domain import TRIES, State
from services.checkpoints.queries import ANSWERS
from services.kit.rules import dump, every_key
from services.kit.snapshot import Snapshot
from services.kit.testing import Fold
from tests.fixtures.databases import on_each_database


def experiment(id=1, *, best=0, trial_best=1, latest=1, smaller=True, source=None):
    storage = {"save_experiment_best": best, "save_trial_best": trial_best, "save_trial_latest": latest}
    config = {"checkpoint_storage": storage, "searcher": {"smaller_is_better": smaller}}
    return searcher.ExperimentCreated(
        experiment_id=id,
        user="ann",
        config=config,
        original_config="",
        source_checkpoint=source,
        reason="asked",
    )


def created(id, of=1):
    return searcher.TrialCreated(
        trial_id=id,
        experiment_id=of,
        request_id="r",
        task_id=f"{of}.r{id}",
        seed=0,
        hparams={},
        reason="asked",
    )


def stored(uuid, steps, of=1, *, experiment_id=1, **more):
    payload = {"resources": {"a/": 0, "a/b": 7, "c": 5}, "metadata": {"steps_completed": steps}} | more
    return trial.CheckpointStored(
        trial_id=of,
        experiment_id=experiment_id,
        run=1,
        task_id=f"{experiment_id}.r{of}",
        allocation_id=f"{experiment_id}.r{of}.1",
        uuid=uuid,
        steps_completed=steps,
        **payload,
    )


def validated(steps, metric, of=1, number=1):
    return metrics.Validated(
        trial_id=of, number=number, run=1, steps_completed=steps, metric=metric, reported_at=0.0
    )


def ended(id=1):
    return searcher.ExperimentEnded(id, "COMPLETED", "the search is complete")


def settled(id=1):
    return metrics.Settled(trial_id=id, reason="judged")


def gc_ended(number=1, outcome="succeeded", of=1, kind="CHECKPOINT_GC"):
    allocation = ids.allocation_id(ids.deletion_task_id(of, number), 1)
    return scheduler.AllocationEnded(
        allocation_id=allocation, kind=kind, run=1, outcome=outcome, reason=f"it {outcome}"
    )


@pytest.fixture
def fold():
    return Fold(RULES)


@pytest.fixture
def three(fold):
    """A trial with three checkpoints, of which the first is the best and the last the latest."""
    fold.apply(experiment(), created(1))
    fold.apply(stored("a", 10), validated(10, 0.1), stored("b", 20), validated(20, 0.3))
    return fold.apply(validated(30, 0.2), stored("c", 30))


def states(fold):
    return {uuid: c.state for uuid, c in fold.state.checkpoints.items()}


def ask(fold, **filters):
    return ANSWERS[Checkpoints](fold.state, Checkpoints(**filters))


def test_nothing_goes_before_the_experiment_has_ended_and_all_reports_are_judged(three):
    assert three.decide() == []
    assert three.apply(settled()).decide() == []
    (request,) = three.apply(ended()).decide()
    assert request.uuids == ("b",)


def test_an_ended_experiment_waits_for_its_last_reports(three):
    assert three.apply(ended()).decide() == []
    assert three.apply(validated(20, 0.01, number=4)).decide() == []
    (request,) = three.apply(settled()).decide()
    assert request.uuids == ("a",)


def test_a_request_names_its_task_and_its_reason_and_comes_once(three):
    (request,) = three.apply(ended(), settled()).decide()
    assert (request.task_id, request.experiment_id) == ("1.gc-1", 1)
    assert "experiment 1 has ended" in request.reason
    assert "best 1" in request.reason
    assert three.apply(validated(99, 0.0)).decide() == []
    assert states(three) == dict.fromkeys("abc", "COMPLETED")


def test_after_the_task_they_are_deleted(three):
    three.apply(ended(), settled()).decide()
    (finished,) = three.apply(gc_ended()).decide()
    assert finished == checkpoints.DeletionFinished(
        task_id="1.gc-1",
        experiment_id=1,
        uuids=("b",),
        deleted=True,
        reason="experiment 1 has ended; kept are its best 0, and of each trial the best 1 and the latest 1",
    )
    assert states(three) == {"a": "COMPLETED", "b": "DELETED", "c": "COMPLETED"}
    assert three.state.deletions == {}
    assert three.apply(gc_ended()).decide() == []


def test_ends_of_other_tasks_mean_nothing(three):
    three.apply(ended(), settled()).decide()
    assert three.apply(gc_ended(2), gc_ended(of=2), gc_ended(kind="TRIAL")).decide() == []
    assert three.apply(gc_ended()).decide()


def test_a_lost_task_is_tried_again_and_given_up_in_the_end(three):
    three.apply(ended(), settled()).decide()
    for number in range(1, TRIES):
        finished, request = three.apply(gc_ended(number, "worker_lost")).decide()
        assert (finished.deleted, finished.reason) == (False, "not deleted: it worker_lost")
        assert (request.task_id, request.uuids) == (f"1.gc-{number + 1}", ("b",))
        assert states(three)["b"] == "COMPLETED"
    (finished,) = three.apply(gc_ended(TRIES, "failed")).decide()
    assert not finished.deleted
    assert states(three)["b"] == "ERROR"
    assert ask(three, uuids=["b"])[0]["reason"] == "not deleted: it failed"


def test_the_direction_counts(fold):
    fold.apply(experiment(latest=0, smaller=False), created(1))
    fold.apply(stored("a", 1), stored("b", 2), validated(1, 0.9), validated(2, 0.1), ended(), settled())
    assert [r.uuids for r in fold.decide()] == [("b",)]


def test_a_later_run_that_validates_again_replaces_what_was_found(fold):
    fold.apply(experiment(latest=0), created(1), stored("a", 1), stored("b", 2))
    fold.apply(validated(1, 0.1), validated(2, 0.2), validated(1, 0.9, number=3), ended(), settled())
    assert [r.uuids for r in fold.decide()] == [("a",)]


def test_the_best_of_the_experiment_over_all_trials(fold):
    fold.apply(experiment(best=1, trial_best=0, latest=0), created(1), created(2))
    fold.apply(stored("a", 1), stored("b", 1, of=2), validated(1, 0.2), validated(1, 0.1, of=2))
    assert fold.apply(ended(), settled(1)).decide() == []
    assert [r.uuids for r in fold.apply(settled(2)).decide()] == [("a",)]


def test_what_another_experiment_starts_from_stays_for_good(fold):
    fold.apply(experiment(trial_best=0, latest=0), created(1), stored("a", 1), stored("b", 2))
    fold.apply(experiment(2, source="a"), ended(), settled())
    assert [r.uuids for r in fold.decide()] == [("b",)]
    fold.apply(gc_ended(), ended(2)).decide()
    assert states(fold) == {"a": "COMPLETED", "b": "DELETED"}


def test_a_checkpoint_stored_twice_is_one(three):
    three.apply(stored("a", 10), stored("a", 99, resources={}))
    (row,) = ask(three, uuids=["a"])
    assert (row["steps_completed"], row["size_bytes"]) == (10, 12)
    assert len(ask(three, experiment_id=1)) == 3


@pytest.mark.parametrize("uuid", ["", "..", "../x", "a/b", "/etc", "x" * 65, "a\0"])
def test_an_id_that_is_no_name_is_not_taken(three, uuid):
    three.apply(stored(uuid, 50))
    assert len(three.state.checkpoints) == 3


def test_what_is_said_of_unknown_trials_passes_by(fold):
    fold.apply(stored("a", 1, of=7), validated(1, 0.5, of=7), settled(7), experiment(), created(1))
    assert fold.state.checkpoints == {}
    fold.apply(stored("b", 1, experiment_id=99))
    assert ask(fold, trial_id=1)[0]["experiment_id"] == 1


def test_validations_without_a_checkpoint_are_dropped_once_a_trial_is_settled(three):
    three.apply(*(validated(n, 0.5) for n in range(100, 200)), settled())
    assert set(three.state.validations) == {"1@10", "1@20", "1@30"}
    assert [row["metric"] for row in ask(three, trial_id=1)] == [0.1, 0.3, 0.2]


def test_many_go_in_portions(fold, monkeypatch):
    monkeypatch.setattr(rules, "AT_ONCE", 4)
    fold.apply(experiment(trial_best=0, latest=1), created(1), *(stored(f"c{n}", n) for n in range(10)))
    requests = fold.apply(ended(), settled()).decide()
    assert [(r.task_id, len(r.uuids)) for r in requests] == [("1.gc-1", 4), ("1.gc-2", 4), ("1.gc-3", 1)]
    assert fold.apply(gc_ended(2)).decide()[0].uuids == ("c4", "c5", "c6", "c7")
    assert sorted(states(fold).values()).count("DELETED") == 4


def test_rows_and_filters(three):
    three.apply(experiment(2), created(2, of=2), stored("z", 5, of=2, experiment_id=2))
    with pytest.raises(Refused, match="name uuids, a trial or an experiment"):
        ask(three)
    assert [row["uuid"] for row in ask(three, trial_id=2)] == ["z"]
    assert [row["uuid"] for row in ask(three, experiment_id=1, uuids=["z", "c", "a", "?"])] == ["a", "c"]
    assert (
        ask(three, experiment_id=9) == ask(three, trial_id=9) == ask(three, trial_id=1, experiment_id=2) == []
    )
    row = msgspec.json.decode(msgspec.json.encode(ask(three, uuids=["b"])[0]))
    wanted = {"uuid": "b", "trial_id": 1, "experiment_id": 1, "task_id": "1.r1", "allocation_id": "1.r1.1"}
    wanted |= {"state": "COMPLETED", "resources": {"a/": 0, "a/b": 7, "c": 5}, "steps_completed": 20}
    wanted |= {
        "metadata": {"steps_completed": 20},
        "metric": 0.3,
        "size_bytes": 12,
        "reason": "",
        "at": three.now,
    }
    assert wanted.items() <= row.items()


database = on_each_database("checkpoints")


def test_a_restart_from_the_snapshot_goes_on_as_if_nothing_had_been(three, database):
    snapshot = Snapshot("checkpoints", State)

    def save(*events):
        records = {}
        for event in events:
            before = every_key(three.state)
            three.apply(event)
            for kind, id in {*before, *every_key(three.state)}:
                records[kind, id] = getattr(three.state, kind).get(id)
        with database.engine.begin() as connection:
            assert snapshot.save(connection, records, {"CONTROL": three._position})

    def load():
        with database.engine.begin() as connection:
            return snapshot.load(connection)[0]

    save(ended(), settled())
    assert dump(load()) == dump(three.state)
    three.state = load()
    (request,) = three.decide()
    assert request.uuids == ("b",)
    save(gc_ended())
    assert dump(load()) == dump(three.state)
    finished = checkpoints.DeletionFinished(
        task_id="1.gc-1", experiment_id=1, uuids=("b",), deleted=True, reason="gone"
    )
    save(finished)
    assert dump(load()) == dump(three.state)
    assert load().deletions == {}


def unmanaged(fold):
    fold.apply(msgspec.structs.replace(experiment(latest=1, trial_best=0), unmanaged=True), created(1))
    fold.apply(stored("a", 10), stored("b", 20))
    return fold.apply(ended(), settled())


def test_nothing_of_an_unmanaged_experiment_goes_by_itself(fold):
    assert unmanaged(fold).decide() == []


def test_but_it_does_once_somebody_says_what_stays(fold):
    unmanaged(fold).decide()
    keep = {"checkpoint_storage.save_trial_latest": 1}
    fold.apply(searcher.ExperimentRevised(1, keep, "gc-policy set by ann"))
    (deletion,) = fold.decide()
    assert deletion.uuids == ("a",)


def trial_ended(of=1):
    return searcher.TrialEnded(trial_id=of, state="ERROR", restarts=0, reason="silent, or its script says so")


REOPENED = {
    "runs again": [
        searcher.ExperimentActivated(1, "started by ann"),
        searcher.RunOpened(
            trial_id=1, experiment_id=1, task_id="1.r1", allocation_id="1.r1.2", run=2, reason="started"
        ),
    ],
    # A script that was declared lost says how it ended, without a word that it has been there all the time.
    "was lost": [searcher.ExperimentActivated(1, "its script ended, says ann")],
}
KEEP_BEST = {"checkpoint_storage.save_trial_best": 1, "checkpoint_storage.save_trial_latest": 0}


@pytest.mark.parametrize("reopened", REOPENED.values(), ids=REOPENED)
@pytest.mark.parametrize("late", [None, "before", "behind"])
def test_a_script_that_ends_a_second_time_has_all_its_reports_judged_first(fold, reopened, late):
    """Also if the first end is settled only now: metrics decides, and others state something in between."""
    fold.apply(msgspec.structs.replace(experiment(), unmanaged=True), created(1), stored("a", 10))
    fold.apply(validated(10, 0.2), trial_ended())
    first = msgspec.structs.replace(settled(), end=fold.state.trials[1].end)
    fold.apply(*([] if late else [first]), ended(), searcher.ExperimentRevised(1, KEEP_BEST, "set by ann"))
    assert fold.decide() == []
    fold.apply(*reopened, *([first] if late == "before" else []), stored("b", 20), stored("c", 30))
    assert fold.decide() == []
    fold.apply(trial_ended(), ended(), *([first] if late == "behind" else []))
    assert fold.decide() == []
    fold.apply(validated(20, 0.1), msgspec.structs.replace(first, end=fold.state.trials[1].end))
    (deletion,) = fold.decide()
    assert deletion.uuids == ("a", "c")


def test_a_script_that_was_lost_may_report_the_checkpoint_of_an_earlier_validation(fold):
    """Its host slept while it stored the checkpoint, which the trial's end did not wait for."""
    fold.apply(msgspec.structs.replace(experiment(), unmanaged=True), created(1), stored("a", 10))
    fold.apply(searcher.ExperimentRevised(1, KEEP_BEST, "set by ann"), validated(10, 0.2))
    fold.apply(validated(20, 0.1, number=2), trial_ended(), ended(), settled())
    assert fold.decide() == []
    fold.apply(
        searcher.ExperimentActivated(1, "heard again"), stored("b", 20), trial_ended(), ended(), settled()
    )
    (deletion,) = fold.decide()
    assert deletion.uuids == ("a",)
