"""A worker tells in its registration which limits each run has, and why others are missing."""

import asyncio
import os

import pytest

from det_contracts import codec, subjects
from det_contracts.events.worker import limit_problem
from det_contracts.limits import NAME_CHARACTERS
from services.kit.log_memory import MemoryLog
from tests.worker.test_control_groups import second_version
from worker.account import Accounts
from worker.control_groups import RunGroups
from worker.identity import Identity
from worker.registration import Presence
from worker.run_limits import limits_of
from worker.sessions import Sessions
from worker.settings import WorkerSettings
from worker.shim.control_group import ControlGroups

NO_GROUPS = "STEADFAST_WORKER_CGROUP=none"


def limits(tmp_path, groups=None, run_as="", **settings):
    settings = WorkerSettings(worker_home=tmp_path, **settings)
    made = limits_of(settings, groups or RunGroups("w", below="none"), Accounts(run_as))
    assert [limit.kind for limit in made] == ["memory", "processes", "processor", "disk"]
    return {limit.kind: (limit.holds, limit.text) for limit in made}


def test_without_groups_and_settings_nothing_holds_and_each_says_why(tmp_path):
    assert limits(tmp_path) == {
        "memory": (False, NO_GROUPS),
        "processes": (False, NO_GROUPS),
        "processor": (False, NO_GROUPS),
        "disk": (False, "STEADFAST_WORKER_DISK_MIB is not set"),
    }


def test_with_groups_all_limits_that_are_set_hold(tmp_path, monkeypatch):
    second_version(tmp_path)
    monkeypatch.setattr(ControlGroups, "make", lambda _: None)
    groups = RunGroups("w", slot_memory_mib=2048, max_processes=70, proc=tmp_path)
    by_kind = limits(tmp_path, groups, worker_slot_memory_mib=2048, worker_processes=70, worker_disk_mib=5000)
    assert all(holds for holds, _ in by_kind.values())
    assert by_kind["memory"][1] == "2,048 MiB for each slot of the run"
    assert by_kind["processes"][1] == "70 processes and threads"
    assert by_kind["disk"][1] == "5,000 MiB in the folder of the run"
    without = limits(tmp_path, groups, worker_processes=0)
    assert without["memory"] == (False, "STEADFAST_WORKER_SLOT_MEMORY_MIB is not set")
    assert without["processes"] == (False, "STEADFAST_WORKER_PROCESSES says that there is none")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts tasks as other users")
def test_the_limit_of_an_account_is_left_without_groups(tmp_path):
    holds, text = limits(tmp_path, run_as="65534:65534", worker_processes=70)["processes"]
    assert holds
    assert text == f"70 processes and threads, which all runs of the same user share ({NO_GROUPS})"


def test_an_engine_limits_its_containers_itself(tmp_path):
    by_kind = limits(tmp_path, worker_launcher="podman", worker_disk_mib=5000)
    assert [holds for holds, _ in by_kind.values()] == [False, False, False, True]
    assert "STEADFAST_WORKER_CONTAINER_OPTIONS" in by_kind["memory"][1]


def test_a_registration_tells_them_however_long_the_reason(tmp_path):
    groups = RunGroups("w", below="none")
    groups.missing = dict.fromkeys(groups.missing, f"no such file: {'/long' * 800}")
    each = limits_of(WorkerSettings(worker_home=tmp_path), groups, Accounts(""))
    assert max(len(limit.text) for limit in each) == NAME_CHARACTERS
    log = MemoryLog()
    presence = Presence(Identity("w", "f", "h"), "default", "a", log, Sessions(tmp_path), limits=each)
    asyncio.run(presence.register((), (), 0))
    (message,) = log.streams[subjects.WITNESS]
    registered = codec.decode(message.body, message.position).event
    assert (registered.limits, limit_problem(registered)) == (each, "")
