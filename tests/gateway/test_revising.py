"""What people change of experiments that exist (REST spec, section 3)."""

from __future__ import annotations

import pytest

from det_contracts.commands import ChangeExperiment, ChangeJob, ReviseExperiment
from det_contracts.events import checkpoints, scheduler, searcher
from det_contracts.problems import failed_precondition
from tests.gateway import stories as story

ONE = "/api/v1/experiments/1"


@pytest.fixture
def three(gateway):
    """Three experiments; changes that are asked for come true."""
    gateway.apply(*(story.created(id, name=f"name {id}", labels=["a"]) for id in (1, 2, 3)))

    async def obey(command):
        match command:
            case ReviseExperiment():
                changed = searcher.ExperimentRevised(command.experiment_id, command.changes, "asked")
                await gateway.append(changed)
            case ChangeJob():
                changed = scheduler.JobChanged(
                    experiment_id=command.experiment_id,
                    pool="default",
                    priority=command.priority or 42,
                    weight=1.0,
                    max_slots=None,
                    position="",
                    reason="asked",
                )
                await gateway.append(changed)

    gateway.peers.on_command = obey
    return gateway


def patch(gateway, body, id=1):
    return gateway.send("PATCH", f"/api/v1/experiments/{id}", body)


def test_names_labels_and_notes_change_everywhere(three):
    answer = patch(three, {"name": "new", "labels": ["b", "c"], "notes": "look here", "description": "d"})
    assert answer.status_code == 200, answer.text
    experiment = answer.json()["experiment"]
    assert (experiment["name"], experiment["labels"], experiment["notes"]) == ("new", ["b", "c"], "look here")
    assert (experiment["config"]["name"], experiment["config"]["description"]) == ("new", "d")
    assert [row["id"] for row in three.get("/api/v1/experiments", name="new")["experiments"]] == [1]
    assert [row["id"] for row in three.get("/api/v1/experiments", labels="a")["experiments"]] == [2, 3]


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ({"labels": ["b", "b", "c"]}, {"labels": ["b", "c"]}),
        ({"labels": {"b": True, "c": False}}, {"labels": ["b"]}),
        ({"checkpointStorage": {"saveTrialBest": 2.0}}, {"checkpoint_storage.save_trial_best": 2}),
        ({"resources": {"priority": 7.0}}, {"priority": 7}),
    ],
)
def test_a_change_is_stored_as_the_configuration_holds_it(three, body, stored):
    assert patch(three, body).status_code == 200
    (command,) = three.peers.commands
    sent = command.changes if isinstance(command, ReviseExperiment) else {"priority": command.priority}
    # `2 == 2.0`, of which retention could not take so many checkpoints.
    assert repr(sent) == repr(stored)


def test_null_is_a_field_that_was_not_sent(three):
    assert patch(three, {"description": "d", "notes": "n"}).status_code == 200
    nothing = {"name": None, "description": None, "labels": None, "notes": None}
    nothing |= {
        "resources": {"priority": None, "weight": None},
        "checkpointStorage": {"saveTrialBest": None, "saveTrialLatest": None},
    }
    experiment = patch(three, nothing).json()["experiment"]
    assert (experiment["name"], experiment["description"]) == ("name 1", "d")
    assert (experiment["labels"], experiment["notes"]) == (["a"], "n")
    assert len(three.peers.commands) == 1
    assert patch(three, {"resources": None, "checkpointStorage": None}).status_code == 200


@pytest.mark.parametrize("first", [{"notes": "one"}, {"name": "new"}, {"resources": {"priority": 7}}])
def test_a_change_leaves_the_next_one_possible(three, first):
    assert patch(three, first).status_code == 200
    again = patch(three, {"notes": "two"})
    assert again.status_code == 200, again.text
    experiment = again.json()["experiment"]
    assert (experiment["notes"], experiment["labels"], experiment["config"]["labels"]) == (
        "two",
        ["a"],
        ["a"],
    )


def test_shares_go_to_the_scheduler_and_show_in_the_configuration(three):
    answer = patch(three, {"resources": {"priority": 7, "maxSlots": None}})
    assert answer.status_code == 200, answer.text
    (command,) = three.peers.commands
    assert (command.priority, command.max_slots) == (7, None)
    assert answer.json()["experiment"]["config"]["resources"]["priority"] == 7


def test_retention_changes_in_one_command(three):
    body = {"checkpointStorage": {"saveExperimentBest": 1, "saveTrialBest": 2, "saveTrialLatest": 3}}
    storage = patch(three, body).json()["experiment"]["config"]["checkpoint_storage"]
    retention = [storage[f"save_{name}"] for name in ("experiment_best", "trial_best", "trial_latest")]
    assert retention == [1, 2, 3]
    (command,) = three.peers.commands
    assert command.changes["checkpoint_storage.save_trial_best"] == 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": " "}, "`name` must not be an empty or whitespace string"),
        ({"resources": {"weight": 0}}, "weight must be greater than 0"),
        ({"resources": {"priority": 100}}, "priority"),
        ({"checkpointStorage": {"saveTrialBest": -1}}, "save_trial_best"),
        ({"labels": 3}, "labels"),
        ({"resources": 5}, "resources: a JSON object is expected, not 5"),
        ([1], "a JSON object is expected"),
        (b"{", "not valid JSON"),
    ],
)
def test_what_makes_no_sense_changes_nothing(three, body, message):
    body = body | {"notes": "half done?"} if isinstance(body, dict) else body
    answer = patch(three, body)
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["error"]["error"]
    assert three.peers.commands == []


@pytest.mark.parametrize("notes", [3, {"a": 1}, ["a"]])
def test_notes_are_a_text(three, notes):
    message = three.refused(400, "PATCH", ONE, {"notes": notes})
    assert "notes: a text is expected" in message
    assert three.peers.commands == []


def test_what_has_ended_has_no_place_in_the_queue(three):
    three.apply(searcher.ExperimentEnded(1, "COMPLETED", "done"))
    for share in ({"weight": 2}, {"priority": 3}, {"maxSlots": None}):
        message = three.refused(400, "PATCH", "/api/v1/experiments/1", {"notes": "n", "resources": share})
        assert message == "experiment 1 is COMPLETED: it has no place in the queue any more"
    assert three.peers.commands == []
    assert patch(three, {"notes": "n"}).json()["experiment"]["notes"] == "n"


def test_unknown_experiments_are_not_found(three):
    assert patch(three, {"name": "x"}, 9).status_code == 404
    assert three.refused(404, "GET", "/api/v1/experiments/9") == "experiment '9' not found"


def test_archived_ones_are_out_of_the_list_that_is_asked_for(three):
    three.apply(searcher.ExperimentArchived(2, True, "archived by ann"))
    assert three.get("/api/v1/experiments/2")["experiment"]["archived"] is True
    assert [e["id"] for e in three.get("/api/v1/experiments", archived="false")["experiments"]] == [1, 3]
    assert [e["id"] for e in three.get("/api/v1/experiments", archived="true")["experiments"]] == [2]
    assert len(three.get("/api/v1/experiments")["experiments"]) == 3


@pytest.mark.parametrize("action", ["archive", "unarchive"])
def test_archiving_is_asked_of_the_searcher(three, action):
    assert three.send("POST", f"{ONE}/{action}", {}).json() == {}
    assert three.peers.commands == [ChangeExperiment(experiment_id=1, action=action, user="determined")]


def test_a_deleted_experiment_is_in_no_list(three):
    story_of_2 = [story.trial_created(1, 2), story.run_requested(1, 2), story.allocation_ended(1, 2)]
    three.apply(*story_of_2, searcher.ExperimentEnded(2, "COMPLETED", "done"))
    assert three.send("DELETE", "/api/v1/experiments/2").json() == {}
    three.apply(searcher.ExperimentDeleting(2, "deleted by ann"))
    assert three.get("/api/v1/experiments/2")["experiment"]["state"] == "STATE_DELETING"
    three.apply(searcher.ExperimentDeleted(2, "DELETE_FAILED", "the disk is read-only", (1,)))
    experiment = three.get("/api/v1/experiments/2")["experiment"]
    assert (experiment["state"], experiment["stateReason"]) == (
        "STATE_DELETE_FAILED",
        "the disk is read-only",
    )
    three.apply(
        checkpoints.ExperimentEmptied(2, True, ""), searcher.ExperimentDeleted(2, "DELETED", "", (1,))
    )
    three.refused(404, "GET", "/api/v1/experiments/2")
    three.refused(404, "GET", "/api/v1/trials/1")
    assert [row["id"] for row in three.get("/api/v1/experiments")["experiments"]] == [1, 3]


def test_bulk_actions_answer_per_id(three):
    def refuse(command):
        if command.experiment_id == 2:
            raise failed_precondition("Experiment is not in terminal state.")

    three.peers.on_command = refuse
    answer = three.send("POST", "/api/v1/experiments/archive", {"experimentIds": [1, 2]})
    assert answer.json()["results"] == [
        {"id": 1, "error": ""},
        {"id": 2, "error": "Experiment is not in terminal state."},
    ]
    by_filter = {"filters": {"name": "NAME", "excludedExperimentIds": [3]}}
    answer = three.send("DELETE", "/api/v1/experiments/delete", by_filter)
    assert [result["id"] for result in answer.json()["results"]] == [1, 2]


def test_notes_and_labels_may_change_as_often_as_one_likes(three):
    for text, labels in (("one", []), ("two", ["a"]), ("three", []), ("four", ["b"])):
        answer = patch(three, {"notes": text, "labels": labels})
        assert answer.status_code == 200, answer.text
        experiment = answer.json()["experiment"]
        assert (experiment["notes"], experiment["labels"]) == (text, labels)
