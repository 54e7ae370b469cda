"""`det experiment set`, `label`, `archive`, `delete`."""

import pytest

from tests.sdk.fake_gateway import Status

ONE = "/api/v1/experiments/7"


def sent(master, method, path=ONE):
    return [call.json for call in master.calls_to(method, path)]


@pytest.mark.parametrize(
    ("words", "changes", "expected"),
    [
        (["name", 7, "new one"], {"name": "new one"}, "Set name of experiment 7 to 'new one'"),
        (["description", 7, "d"], {"description": "d"}, "Set description of experiment 7 to 'd'"),
        (["priority", 7, 3], {"resources": {"priority": 3}}, "Set `priority` of experiment 7 to 3"),
        (["weight", 7, 2.5], {"resources": {"weight": 2.5}}, "Set `weight` of experiment 7 to 2.5"),
        (["max-slots", 7, 4], {"resources": {"maxSlots": 4}}, "Set `max_slots` of experiment 7 to 4"),
        (
            ["max-slots", 7, "none"],
            {"resources": {"maxSlots": None}},
            "Set `max_slots` of experiment 7 to None",
        ),
    ],
)
def test_what_is_set_is_sent(master, det, words, changes, expected):
    master.answer("PATCH", ONE, {"experiment": {}})
    done = det("e", "set", *words)
    assert (done.status, done.out.strip()) == (0, expected)
    assert sent(master, "PATCH") == [changes]


def test_retention_asks_first(master, det, monkeypatch):
    master.answer("PATCH", ONE, {"experiment": {}})
    words = ["--save-experiment-best", 1, "--save-trial-best", 2, "--save-trial-latest", 3]
    going = {"uuid": "u-1", "state": "STATE_COMPLETED", "metadata": {"steps_completed": 8}}
    master.answer("GET", "/experiments/7/preview_gc", {"checkpoints": [going], "metric_name": "loss"})
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert "u-1" in det("e", "set", "gc-policy", 7, *words).out
    query = master.calls_to("GET", "/experiments/7/preview_gc")[0].query
    assert query == {"save_experiment_best": ["1"], "save_trial_best": ["2"], "save_trial_latest": ["3"]}
    assert "Aborting" in det("e", "set", "gc-policy", 7, *words).out
    assert sent(master, "PATCH") == []
    assert det("e", "set", "gc-policy", 7, *words, "--yes").status == 0
    retention = {"saveExperimentBest": 1, "saveTrialBest": 2, "saveTrialLatest": 3}
    assert sent(master, "PATCH") == [{"checkpointStorage": retention}]


def test_labels_come_and_go(master, det):
    master.answer("GET", ONE, {"experiment": {"labels": ["a"]}})
    master.answer("PATCH", ONE, {"experiment": {}})
    assert det("e", "label", "add", 7, "b").status == 0
    assert det("e", "label", "add", 7, "a").status == 0
    assert det("e", "label", "remove", 7, "a").status == 0
    assert sent(master, "PATCH") == [{"labels": ["a", "b"]}, {"labels": []}]
    done = det("e", "label", "remove", 7, "c")
    assert (done.status, "had no label 'c'" in done.err) == (0, True)
    assert done.out == "Removed label 'c' from experiment 7\n"
    assert len(sent(master, "PATCH")) == 2


def test_archiving_and_deleting(master, det, monkeypatch):
    for verb in ("archive", "unarchive"):
        master.answer("POST", f"{ONE}/{verb}", {})
        assert det("e", verb, 7).out == f"{verb.capitalize()}d experiment 7\n"
    master.answer("DELETE", ONE, {})
    monkeypatch.setattr("builtins.input", lambda: "n")
    assert "Aborting" in det("e", "delete", 7).out
    assert sent(master, "DELETE") == []
    assert det("e", "delete", 7, "--yes").out == "Deletion of experiment 7 is in progress\n"


def test_a_refusal_is_reported(master, det):
    refusal = {
        "error": {"code": 9, "reason": "FailedPrecondition", "error": "Experiment is not in terminal state."}
    }
    master.answer("POST", f"{ONE}/archive", Status(400, refusal))
    done = det("e", "archive", 7)
    assert done.status == 1
    assert "Experiment is not in terminal state." in done.err


def test_numbers_must_be_numbers(master, det):
    assert det("e", "set", "priority", 7, "high").status == 2
    assert det("e", "set", "max-slots", 7, "many").status == 2
    assert det("e", "set", "gc-policy", 7).status == 2
