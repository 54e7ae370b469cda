"""Which trials judge a checkpoint or train it further, and their metrics (`trial-source-info` of 0.25)."""

from __future__ import annotations

import pytest

from det_contracts import queries
from det_contracts.events import gateway as people
from det_contracts.events import searcher
from services.catalogue import trial_sources
from services.catalogue.domain.state import State
from services.kit import task_tokens
from services.rest_routes.trials import trial_sources as routes
from tests.gateway import stories as story
from tests.gateway.harness import TASK_KEY

PATH = "/api/v1/trial-source-info"
TYPE = "TRIAL_SOURCE_INFO_TYPE_"


@pytest.fixture
def used(gateway):
    """Checkpoints c-1 and c-2 of trial 1, the first as version 1 of model `digits`; trials 2 and 3 run."""
    gateway.apply(
        story.created(1), story.trial_created(1), story.stored(1, "c-1", 10), story.stored(1, "c-2", 20)
    )
    gateway.apply(story.created(2), story.trial_created(2, 2), *story.running(2, experiment_id=2))
    gateway.apply(story.trial_created(3, 2))
    gateway.post("/api/v1/models", {"name": "digits"})
    gateway.post("/api/v1/models/digits/versions", {"checkpointUuid": "c-1"})
    gateway.reported = {2: 3, 3: 1}
    gateway.peers.values[queries.Reports] = lambda query: reports(gateway, query)
    return gateway


def reports(gateway, query):
    rows = [
        {
            "trial_id": id,
            "run": 1,
            "steps_completed": number,
            "group": "inference",
            "at": 1_700_000_000.0,
            "metrics": {"accuracy": number / 10},
            "batch_metrics": None,
            "archived": False,
            "id": number,
        }
        for id in query.trial_ids
        for number in range(gateway.reported.get(id, 0))
    ]
    return {"rows": rows, "more": False}


def use(gateway, trial=2, uuid="c-1", kind="INFERENCE", **more):
    body = {"trialId": trial, "checkpointUuid": uuid, "trialSourceInfoType": TYPE + kind, **more}
    return gateway.post(PATH, {"trialSourceInfo": body})


def trials(gateway, path="checkpoints/c-1", **query):
    sources = gateway.get(f"/api/v1/{path}/trial-source-info-metrics", **query)["data"]
    return {
        source["trialId"]: (source["trialSourceInfoType"].removeprefix(TYPE), len(source["metricReports"]))
        for source in sources
    }


def test_a_checkpoint_lists_the_trials_that_use_it(used):
    assert use(used) == {"trialId": 2, "checkpointUuid": "c-1"}
    use(used, trial=3, kind="FINE_TUNING")
    assert trials(used) == {2: ("INFERENCE", 3), 3: ("FINE_TUNING", 1)}
    assert trials(used, trialSourceInfoType=f"{TYPE}FINE_TUNING") == {3: ("FINE_TUNING", 1)}
    assert trials(used, "checkpoints/c-2") == {}
    (first, _) = used.get("/api/v1/checkpoints/c-1/trial-source-info-metrics")["data"]
    row = first["metricReports"][1]
    assert (row["trialId"], row["totalBatches"], row["group"]) == (2, 1, "inference")
    assert row["metrics"]["avgMetrics"] == {"accuracy": 0.1}


def test_a_version_lists_the_trials_that_use_it_as_such(used):
    use(used, trial=2, modelId=1, modelVersion=1)
    use(used, trial=3)
    assert trials(used, "models/digits/versions/1") == {2: ("INFERENCE", 3)}
    assert list(trials(used)) == [2, 3]


def test_a_repeat_changes_nothing_and_another_report_replaces_the_first(used):
    use(used)
    before = used.backend.journal.streams
    count = sum(len(messages) for messages in before.values())
    use(used)
    assert sum(len(messages) for messages in before.values()) == count
    use(used, kind="FINE_TUNING")
    assert trials(used) == {2: ("FINE_TUNING", 3)}


def test_a_script_speaks_for_its_own_trial_alone(used):
    used.client.headers["Authorization"] = f"Bearer {task_tokens.issue(TASK_KEY, f'{story.task(2, 2)}.1')}"
    assert use(used)["trialId"] == 2
    body = {"trialId": 3, "checkpointUuid": "c-1", "trialSourceInfoType": f"{TYPE}INFERENCE"}
    assert "does not belong to trial 3" in used.refused(403, "POST", PATH, {"trialSourceInfo": body})


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"trialId": 9}, 404, "trial '9' not found"),
        ({"checkpointUuid": "c-9"}, 404, "checkpoint 'c-9' not found"),
        ({"trialSourceInfoType": f"{TYPE}UNSPECIFIED"}, 400, "TYPE_INFERENCE' or 'TRIAL"),
        ({"trialSourceInfoType": "JUDGES"}, 400, "trialSourceInfoType"),
        ({"modelId": 1}, 400, "give both, or neither"),
        ({"modelId": 7, "modelVersion": 1}, 404, "model '7' not found"),
        ({"modelId": 1, "modelVersion": 2}, 404, "version of model 'digits' '2' not found"),
        ({"modelId": 1, "modelVersion": 1, "checkpointUuid": "c-2"}, 400, "is checkpoint c-1, not c-2"),
    ],
)
def test_what_is_refused(used, changes, status, message):
    body = {"trialId": 2, "checkpointUuid": "c-1", "trialSourceInfoType": f"{TYPE}INFERENCE", **changes}
    assert message in used.refused(status, "POST", PATH, {"trialSourceInfo": body})
    assert used.catalogue.state.sources == {}


def test_what_is_asked_of_nothing_is_not_found(used):
    for path in ("checkpoints/c-9", "models/digits/versions/2", "models/none/versions/1"):
        used.refused(404, "GET", f"/api/v1/{path}/trial-source-info-metrics")


def test_a_trial_names_so_many_and_an_answer_holds_so_many(used, monkeypatch):
    monkeypatch.setattr(trial_sources, "MAX_SOURCES", 1)
    monkeypatch.setattr(routes, "MAX_REPORTS", 2)
    use(used)
    use(used, kind="FINE_TUNING")
    body = {"trialId": 2, "checkpointUuid": "c-2", "trialSourceInfoType": f"{TYPE}INFERENCE"}
    assert "the most that a trial can name" in used.refused(400, "POST", PATH, {"trialSourceInfo": body})
    use(used, trial=3)
    assert trials(used) == {2: ("FINE_TUNING", 2), 3: ("INFERENCE", 0)}
    monkeypatch.setattr(routes, "MAX_TRIALS", 1)
    assert list(trials(used)) == [3]


def test_the_most_that_are_listed_are_of_those_that_a_user_may_see(used, monkeypatch):
    monkeypatch.setattr(routes, "MAX_TRIALS", 1)
    used.log_in("admin")
    used.post("/api/v1/workspaces", {"name": "Vision"})
    used.post("/api/v1/workspaces/2/projects", {"name": "Digits"})
    used.apply(story.created(4), story.trial_created(4, 4), people.ExperimentMoved(4, 2, "tried"))
    use(used, trial=2)
    use(used, trial=4)
    assert list(trials(used)) == [4]
    used.apply(
        people.UserSet(user_id=8, username="vera", reason="made"),
        people.AuthzSet("rbac", "tried"),
        people.RolesSet("user-8", (people.Grant("Viewer", 1),), "tried"),
    )
    used.log_in("vera")
    assert list(trials(used)) == [2]


def test_a_deleted_experiment_takes_its_uses_along(used):
    use(used)
    use(used, trial=3)
    used.apply(
        searcher.ExperimentEnded(2, "CANCELED", "t"),
        searcher.TrialsDeleted(2, (2,), (story.task(2, 2),), "t"),
    )
    assert list(trials(used)) == [3]
    used.apply(searcher.ExperimentDeleted(2, "DELETED", "t"))
    state: State = used.catalogue.state
    assert (trials(used), state.sources) == ({}, {})
    assert state.sources_of_trial.first(3) is None
