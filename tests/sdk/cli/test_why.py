"""`det why`."""

import json

import pytest

STEPS = [
    {
        "position": 9,
        "time": "2026-11-21T10:00:05Z",
        "actor": "scheduler",
        "what": "run 2 of trial 12 got 1 slot on vm-1",
        "reason": "a slot is free: 1 on vm-1",
        "about": {"kind": "allocation", "id": "7.x.2"},
        "aside": False,
        "because": [8, 7],
    },
    {
        "position": 8,
        "time": "2026-11-21T10:00:05Z",
        "actor": "scheduler",
        "what": "run 1 of trial 11 ended well",
        "reason": "exit code 0",
        "about": {"kind": "allocation", "id": "7.y.1"},
        "aside": True,
        "because": [],
    },
    {
        "position": 7,
        "time": "2026-11-20T09:59:58Z",
        "actor": "user:ada",
        "what": "experiment 7 was activated",
        "reason": "",
        "about": {"kind": "experiment", "id": "7"},
        "aside": False,
        "because": [],
    },
]


def answer(steps, more=False, **values):
    defaults = {"subject": {"kind": "trial", "id": "12"}, "state": "RUNNING", "waitsFor": ""}
    return defaults | {"steps": steps, "more": more} | values


@pytest.fixture
def utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_chain_is_printed_newest_first(master, det, utc):
    master.answer("GET", "/api/v1/why/trial/12", answer(STEPS))
    done = det("why", "trial", 12)
    assert done.status == 0
    assert done.out == (
        "Trial 12: Running\n"
        "  Saturday, 21 November 2026\n"
        "    10:00:05  run 2 of trial 12 got 1 slot on vm-1: a slot is free: 1 on vm-1 [scheduler]\n"
        "    10:00:05     when run 1 of trial 11 ended well: exit code 0 [scheduler]\n"
        "  Friday, 20 November 2026\n"
        "    09:59:58  <- experiment 7 was activated [ada]\n"
    )


def test_waiting_and_cut_chains_say_so(master, det):
    chain = answer(STEPS, more=True, state="QUEUED", waitsFor="2 slots of pool default")
    master.answer("GET", "/api/v1/why/trial/12", chain)
    lines = det("why", "t", 12).out.splitlines()
    assert lines[0] == "Trial 12: Queued. 2 slots of pool default"
    assert "--all" in lines[-1]


def test_a_job_is_known_by_its_whole_id(master, det):
    chain = answer([], subject={"kind": "job", "id": "experiment-7"})
    master.answer("GET", "/api/v1/why/job/experiment-7", chain)
    assert det("why", "job", "experiment-7").out == "Job experiment-7: Running\n"


def test_json_is_the_answer(master, det):
    master.answer("GET", "/api/v1/why/trial/12", answer(STEPS))
    assert json.loads(det("why", "trial", 12, "--json").out) == answer(STEPS)


def test_the_whole_story_is_put_together_from_pages(master, det):
    master.answer(
        "GET",
        "/api/v1/why/trial/12",
        answer(STEPS[:1], more=True),
        answer(STEPS[2:]),
    )
    lines = det("why", "trial", 12, "--all").out.splitlines()
    assert ["activated" in line for line in lines] == [False, False, True, False, False]
    assert master.calls[-1].query["before"] == ["9"]


def test_wrong_kinds_are_wrong_usage(master, det):
    assert det("why", "weather", 1).status == 2


def test_a_failed_trial_is_explained_by_its_log_as_well(master, det, utc):
    master.answer("GET", "/api/v1/why/trial/12", answer(STEPS, state="ERROR"))
    place = {"file": "train.py", "line": 3, "function": "f"}
    cause = {"rankId": None, "said": {"log": "ValueError: no such layer"}, "place": place}
    master.answer("GET", "/api/v1/trials/12/logs/cause", {"cause": cause})
    last = det("why", "trial", "12").out.splitlines()[-1]
    assert last == "The log of trial 12 says (train.py:3): ValueError: no such layer"


def test_a_failed_experiment_is_explained_by_the_log_of_its_first_failed_trial(master, det, utc):
    master.answer("GET", "/api/v1/why/experiment/7", answer(STEPS, state="ERROR"))
    master.answer("GET", "/api/v1/experiments/7/trials", {"trials": [{"id": 12}]})
    cause = {"rankId": 1, "said": {"log": "ValueError: no such layer"}, "place": None}
    master.answer("GET", "/api/v1/trials/12/logs/cause", {"cause": cause})
    last = det("why", "e", "7").out.splitlines()[-1]
    assert last == "The log of trial 12 says (rank 1): ValueError: no such layer"
    (call,) = master.calls_to("GET", "/api/v1/experiments/7/trials")
    assert call.query["states"] == ["STATE_ERROR"]
