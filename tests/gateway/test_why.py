"""`GET /why/{kind}/{id}`: from the log to the answer, through the reader."""

import asyncio

import pytest

from det_contracts import codec, queries
from det_contracts.events import scheduler, searcher, trial, worker
from services.kit.log import Draft
from services.why import reader
from tests.archive.places import Place
from tests.fixtures.lagging_log import LaggingLog
from tests.gateway import stories

UUIDS = ("b57be4ea-a09c-486d-8dc7-2fa4170e0994", "c7e76896-d804-48ae-851b-ed180723926f")
UUID = UUIDS[0]


@pytest.fixture
def cluster(gateway):
    """Trial 1 stored a checkpoint, completed and so ended experiment 1; trial 2 of experiment 2 runs."""
    gateway.apply(
        stories.worker_here(),
        stories.created(1),
        searcher.ExperimentActivated(1, "submitted by determined"),
        stories.trial_created(1),
        searcher.OperationSet(1, 1, 100, "the first length that the search asks of it"),
        *stories.running(1),
        stories.stored(1, UUID, 100),
        trial.OperationCompleted(trial_id=1, run=1, seq=1, length=100, metric=0.25),
        searcher.TrialIdled(1, 1, True, "the search needs no further training of it"),
        worker.AllocationExited(worker_id="w-1", allocation_id="1.r1.1", exit_code=0),
        stories.allocation_ended(1),
        stories.trial_ended(1, reason="exit code 0"),
    )
    last = gateway.journal.streams["CONTROL"][-1]
    event = searcher.ExperimentStopping(1, "STOPPING_COMPLETED", "the search is complete")
    cause = codec.decode(last.body, last.position).id
    body = codec.encode(event, id="batch-0", actor="searcher", at=1_700_000_001.5, cause=cause)
    gateway.run(gateway.journal.append(Draft(codec.subject_of(event), body, "batch-0")))
    return gateway.apply(
        searcher.ExperimentEnded(1, "COMPLETED", "the search is complete"),
        stories.created(2),
        searcher.ExperimentActivated(2, "submitted by determined"),
        stories.trial_created(2, 2),
        searcher.OperationSet(2, 1, 100, "the first length that the search asks of it"),
        *stories.running(2, 1, 2),
        stories.deleted(UUID),
    )


WHOLE = [
    "experiment 1 completed",
    "experiment 1 was to complete",
    "trial 1 completed",
    "run 1 of trial 1 ended well",
    "run 1 of trial 1 left w-1 with exit code 0",
    "trial 1 had nothing more to do after operation 1",
    "the script of trial 1 reported 0.25 for operation 1",
    "trial 1 was to train to length 100 (operation 1)",
    "trial 1 was created",
    "experiment 1 was activated",
]


def step_texts(answer):
    return [step["what"] for step in answer["steps"]]


def test_an_experiment_leads_through_its_last_trial_to_its_start(cluster):
    answer = cluster.get("/api/v1/why/experiment/1")
    assert (answer["subject"], answer["state"]) == ({"kind": "experiment", "id": "1"}, "COMPLETED")
    assert step_texts(answer) == WHOLE
    assert not answer["more"]


def test_a_step_has_place_time_actor_reason_and_whom_it_is_about(cluster):
    steps = cluster.get("/api/v1/why/experiment/1")["steps"]
    assert steps[1] == {
        "position": 16,
        "name": "searcher.experiment.stopping",
        "time": "2023-11-14T22:13:21.500000Z",
        "actor": "searcher",
        "what": "experiment 1 was to complete",
        "reason": "the search is complete",
        "about": {"kind": "experiment", "id": "1"},
        "aside": False,
        "because": [15],
    }
    positions = [step["position"] for step in steps]
    assert positions == sorted(positions, reverse=True)


@pytest.mark.parametrize(
    ("subject", "state", "first"),
    [
        ("trial/1", "COMPLETED", "trial 1 completed"),
        ("trial/2", "RUNNING", "run 1 of trial 2 started on w-1"),
        ("allocation/1.r1.1", "TERMINATED", "run 1 of trial 1 ended well"),
        ("allocation/2.r2.1", "RUNNING", "run 1 of trial 2 started on w-1"),
        ("job/experiment-1", "COMPLETED", "experiment 1 completed"),
        ("job/2", "RUNNING", "run 1 of trial 2 started on w-1"),
        (f"checkpoint/{UUID}", "DELETED", f"trial 1 stored checkpoint {UUID} at step 100"),
    ],
)
def test_all_kinds(cluster, subject, state, first):
    answer = cluster.get(f"/api/v1/why/{subject}")
    assert answer["state"] == state
    assert first in step_texts(answer)[:2]


def test_a_running_trial_tells_nothing_of_other_experiments(cluster):
    assert step_texts(cluster.get("/api/v1/why/trial/2")) == [
        "run 1 of trial 2 started on w-1",
        "run 1 of trial 2 got 1 slot on w-1",
        "trial 2 asked for 1 slot for its run 1",
        "trial 2 was to train to length 100 (operation 1)",
        "trial 2 was created",
        "experiment 2 was activated",
    ]


def test_why_names_what_something_waits_for(gateway):
    gateway.apply(
        stories.created(1),
        searcher.ExperimentActivated(1, "submitted by determined"),
        stories.trial_created(1),
        stories.run_requested(1),
    )
    gateway.peers.values[queries.Waiting] = {"1.r1.1": "no worker is there"}
    for subject in ("trial/1", "allocation/1.r1.1", "job/1"):
        assert gateway.get(f"/api/v1/why/{subject}")["waitsFor"] == "no worker is there"
    assert gateway.get("/api/v1/why/allocation/1.r1.1")["state"] == "PENDING"


def test_the_whole_story_in_pages_from_the_newest_back(cluster):
    whole = cluster.get("/api/v1/why/trial/1", all="true")
    assert step_texts(whole)[0] == "experiment 1 was created"
    assert f"trial 1 stored checkpoint {UUID} at step 100" in step_texts(whole)
    newest = cluster.get("/api/v1/why/trial/1", all="true", limit=3)
    assert (step_texts(newest), newest["more"]) == (step_texts(whole)[-3:], True)
    before = newest["steps"][0]["position"]
    rest = cluster.get("/api/v1/why/trial/1", all="true", before=before)
    assert (step_texts(rest), rest["more"]) == (step_texts(whole)[:-3], False)
    run = cluster.get("/api/v1/why/allocation/1.r1.1", all="true")
    assert step_texts(run)[0] == "trial 1 asked for 1 slot for its run 1"
    assert step_texts(run)[-1] == "run 1 of trial 1 ended well"
    assert all(
        step_texts(cluster.get(f"/api/v1/why/{subject}", all="true")) for subject in ("experiment/1", "job/1")
    )


def test_an_experiment_that_was_deleted_is_remembered_by_the_log(cluster):
    cluster.apply(
        searcher.ExperimentDeleting(1, "deleted by determined"),
        searcher.ExperimentDeleted(1, "DELETED", "deleted by determined", (1,)),
    )
    cluster.refused(404, "GET", "/api/v1/experiments/1")
    answer = cluster.get("/api/v1/why/experiment/1")
    assert answer["state"] == "DELETED"
    assert step_texts(answer)[:2] == ["experiment 1 was deleted", "experiment 1 is to be deleted"]


@pytest.mark.parametrize(
    "subject",
    ["trial/77", "trial/x", "experiment/77", "job/experiment-x", "allocation/9.9.9", "checkpoint/no"],
)
def test_what_does_not_exist_is_not_found(cluster, subject):
    kind, _, id = subject.partition("/")
    assert cluster.refused(404, "GET", f"/api/v1/why/{subject}") == f"{kind} '{id}' not found"


def test_questions_that_make_no_sense(cluster):
    assert "not 'weather'" in cluster.refused(400, "GET", "/api/v1/why/weather/1")
    assert "limit must be" in cluster.refused(400, "GET", "/api/v1/why/trial/1?all=true&limit=0")
    cluster.client.headers.pop("Authorization")
    cluster.refused(401, "GET", "/api/v1/why/trial/1")


def test_what_a_script_wrote_about_others_is_not_believed(cluster):
    forged = codec.encode(
        trial.ExitedEarly(1, 1, "EXITED_REASON_INVALID_HP"), id="f", actor="trial:2", at=0.0
    )
    for number, body in enumerate((forged, b"damaged")):
        cluster.run(cluster.journal.append(Draft("control.trial.1.checkpoint_stored", body, f"f{number}")))
    assert step_texts(cluster.get("/api/v1/why/experiment/1")) == WHOLE


def test_a_run_that_is_wanted_is_looked_up_whatever_its_experiment(cluster):
    cluster.apply(
        scheduler.PreemptRequested(
            allocation_id="2.r2.1", reason="slots wanted by job 3 (priority 1)", wanted_by="3.r3.1"
        ),
        stories.created(3),
        stories.trial_created(3, 3),
    )
    # The request must lie before the preemption; here it comes too late and is not taken for its cause.
    cluster.apply(stories.run_requested(3, 3))
    answer = cluster.get("/api/v1/why/allocation/2.r2.1")
    assert step_texts(answer) == [
        "run 1 of trial 2 was asked to save and leave its slots to run 1 of trial 3"
    ]


def test_a_run_is_explained_the_same_however_busy_its_worker_was(gateway, monkeypatch):
    monkeypatch.setattr(reader, "SEARCH_WINDOW", 4)
    gateway.apply(
        stories.worker_here(),
        stories.created(1),
        searcher.ExperimentActivated(1, "submitted by determined"),
        *(stories.trial_created(id) for id in (1, 2)),
        *stories.running(1),
        *(worker.AllocationStarted("w-1", "1.r2.1") for _ in range(30)),
        worker.AllocationExited(worker_id="w-1", allocation_id="1.r1.1", exit_code=3),
        stories.allocation_ended(1),
        *(worker.AllocationStarted("w-1", "1.r2.1") for _ in range(30)),
    )
    assert step_texts(gateway.get("/api/v1/why/allocation/1.r1.1"))[:4] == [
        "run 1 of trial 1 ended well",
        "run 1 of trial 1 left w-1 with exit code 3",
        "run 1 of trial 1 started on w-1",
        "run 1 of trial 1 got 1 slot on w-1",
    ]


def test_a_log_that_does_not_answer_is_said_to_be_away(cluster, monkeypatch):
    async def never(*_, **__):
        await asyncio.sleep(3600)
        yield []

    monkeypatch.setattr(reader, "READ_TIMEOUT_S", 0.01)
    monkeypatch.setattr(reader, "read_between", never)
    for subject in ("trial/1", "trial/1?all=true"):
        assert "cannot be read just now" in cluster.refused(503, "GET", f"/api/v1/why/{subject}")


def test_what_would_take_too_many_reads_is_cut_and_says_so(cluster, monkeypatch):
    monkeypatch.setattr(reader, "MAX_READS", 2)
    answer = cluster.get("/api/v1/why/experiment/1")
    assert step_texts(answer) == WHOLE[:3]
    assert answer["more"]


def everything_told(cluster, last):
    """Why, events, the timeline and the master's log, up to a position."""
    things = [("experiment", 1), ("trial", 1), ("trial", 2), ("allocation", "1.r1.1")]
    return [
        *(cluster.get(f"/api/v1/why/{kind}/{id}") for kind, id in things),
        *(cluster.get(f"/api/v1/why/{kind}/{id}", all=True, before=last) for kind, id in things),
        *(cluster.get(f"/api/v1/why/{kind}/{id}", all=True, before=last + 1) for kind, id in things),
        cluster.get("/api/v1/experiments/1/timeline")["stretches"],
        cluster.get("/api/v1/events/9"),
        cluster.get("/api/v1/events", before=last + 1),
        cluster.get("/api/v1/events", before=last + 1, owner="searcher", limit=3),
        cluster.lines("/api/v1/master/logs", limit=last)[: last - 1],
    ]


def test_from_a_broker_that_is_behind_all_is_told(cluster):
    last = len(cluster.journal.streams["CONTROL"])
    before = everything_told(cluster, last), cluster.lines("/api/v1/master/logs")
    lagging = LaggingLog(cluster.journal)
    lagging.caught_up.set()
    object.__setattr__(cluster.backend, "journal", lagging)
    assert (everything_told(cluster, last), cluster.lines("/api/v1/master/logs")) == before
    assert lagging.opened > 20


def test_archived_events_are_explained_as_before(cluster, tmp_path):
    """And a damaged segment is told by its name."""
    last = len(cluster.journal.streams["CONTROL"])
    before = everything_told(cluster, last)
    place = Place(tmp_path / "archive", stream=cluster.journal, count=5)
    headers = cluster.run(place.seal())
    assert cluster.run(place.cutter.cut({"gateway": 10**9})) == headers[-1].last
    object.__setattr__(cluster.backend, "journal", place.log)
    for answer, earlier in zip(everything_told(cluster, last), before, strict=True):
        assert answer == earlier
    stands = cluster.get("/api/v1/master/archive")
    assert (stands["first"], stands["archived"]) == (headers[-1].last + 1, headers[-1].last)
    content = place.folder / headers[1].content[:2] / headers[1].content
    content.write_bytes(b"x" + content.read_bytes()[1:])
    assert "from 6 to 10" in cluster.refused(503, "GET", "/api/v1/why/experiment/1")


def test_the_whole_story_of_a_checkpoint_has_its_own_deletion_and_no_other(gateway):
    gateway.apply(
        stories.worker_here(),
        stories.created(1),
        searcher.ExperimentActivated(1, "submitted by determined"),
        stories.trial_created(1),
        *stories.running(1),
        *(stories.stored(1, uuid, step) for step, uuid in enumerate(UUIDS, 1)),
        *(stories.deleted(uuid) for uuid in UUIDS),
    )
    for uuid, other in (UUIDS, UUIDS[::-1]):
        whole = gateway.get(f"/api/v1/why/checkpoint/{uuid}", all="true")
        texts = [step["what"] for step in whole["steps"]]
        assert whole["state"] == "DELETED"
        assert texts[-1] == f"task 1.gc-1 deleted checkpoint {uuid}"
        assert not any("deleted" in text and other in text for text in texts)
        assert texts[0] == "experiment 1 was created"
