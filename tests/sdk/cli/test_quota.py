"""`det quota`."""

import pytest

from determined.cli.failure import Failure
from determined.cli.quota import size

PATH = "/api/v1/quotas"
ANNS = {
    "holder": "user-7",
    "kind": "user",
    "id": 7,
    "name": "ann",
    "slots": 8,
    "jobs": None,
    "storageBytes": 2**40,
    "used": {"slots": 3, "jobs": 2, "storageBytes": None},
}


@pytest.fixture
def quotas(master):
    master.answer("GET", "/api/v1/users/ann/by-username", {"user": {"id": 7, "username": "ann"}})
    groups = {"groups": [{"group": {"groupId": 5, "name": "crew"}}], "pagination": {"total": 1}}
    master.answer("POST", "/api/v1/groups/search", groups)
    spaces = {"workspaces": [{"id": 2, "name": "nlp"}], "pagination": {"total": 1}}
    master.answer("GET", "/api/v1/workspaces", spaces)
    master.answer("GET", PATH, {"quotas": [ANNS], "pagination": {"total": 1}})
    for holder in ("user-7", "group-5", "workspace-2"):
        master.answer("PUT", f"{PATH}/{holder}", {"quota": ANNS})
        master.answer("DELETE", f"{PATH}/{holder}", {})
    return master


def test_quotas_are_listed_with_what_counts(quotas, det):
    shown = det("quota", "list").out
    assert "ann" in shown
    for cell in ("3 of 8", "2, no limit", "? of 1.0TB"):
        assert cell in shown


def test_what_is_not_given_stays(quotas, det):
    assert det("quota", "set", "--user", "ann", "--jobs", "20").status == 0
    (call,) = quotas.calls_to("PUT", f"{PATH}/user-7")
    assert call.json == {"slots": 8, "jobs": 20, "storageBytes": 2**40}
    assert det("quota", "set", "--user", "ann", "--slots", "none", "--storage", "500GB").status == 0
    call = quotas.calls_to("PUT", f"{PATH}/user-7")[-1]
    assert call.json == {"slots": None, "jobs": None, "storageBytes": 500 * 10**9}


def test_groups_and_workspaces_go_by_name(quotas, det):
    assert det("quota", "set", "--group", "crew", "--slots", "4").status == 0
    assert quotas.calls_to("PUT", f"{PATH}/group-5")[0].json["slots"] == 4
    assert "workspace-2 no longer has a quota" in det("quota", "delete", "-w", "nlp").out


def test_bad_input_is_reported(quotas, det):
    assert "at least one of --slots, --jobs and --storage" in det("quota", "set", "--user", "ann").err
    assert "--slots takes a number" in det("quota", "set", "--user", "ann", "--slots", "many").err
    assert det("quota", "set", "--slots", "1").status == 2


@pytest.mark.parametrize(
    ("text", "bytes"), [("10", 10), ("1kB", 1000), ("1.5 TiB", 3 * 2**39), ("2g", 2 * 10**9), ("1KiB", 1024)]
)
def test_sizes(text, bytes):
    assert size(text) == bytes


@pytest.mark.parametrize("text", ["", "GB", "-1", "1XB", "1e9", "1GBB"])
def test_what_is_no_size(text):
    with pytest.raises(Failure, match="is not a size"):
        size(text)
