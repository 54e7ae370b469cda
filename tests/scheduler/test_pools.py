"""The file with the resource pools."""

import asyncio
from types import SimpleNamespace

import pytest

from det_contracts.events.scheduler import PoolSettings
from det_contracts.problems import Refused, invalid, unavailable
from services.kit.settings import BadSettings
from services.scheduler import app
from services.scheduler.pools import read_pools


def read(tmp_path, text):
    path = tmp_path / "pools.yaml"
    path.write_text(text)
    return read_pools(path)


def test_a_pool_without_a_scheduler_has_that_of_the_cluster(tmp_path):
    command = read(
        tmp_path,
        """
        scheduler: {type: priority, preemption: true, default_priority: 50}
        resource_pools:
          - pool_name: a
            description: the lab's GPUs
            max_aux_containers_per_agent: 3
          - pool_name: b
            scheduler: {type: fair_share, fitting_policy: worst, allow_heterogeneous_fits: true}
            max_cpu_containers_per_agent: 7
        """,
    )
    assert command.pools == {
        "a": PoolSettings(
            scheduler="priority", preemption=True, default_priority=50, max_aux_containers_per_agent=3
        ),
        "b": PoolSettings(
            fitting_policy="worst", allow_heterogeneous_fits=True, max_aux_containers_per_agent=7
        ),
    }
    assert command.descriptions["a"] == "the lab's GPUs"


def test_a_pool_may_have_its_hosts_end_what_is_out_of_touch(tmp_path):
    command = read(
        tmp_path, "resource_pools: [{pool_name: a, on_lost: fence, fence_after_s: 40}, {pool_name: b}]"
    )
    assert command.pools == {
        "a": PoolSettings(on_lost="fence", fence_after_s=40.0),
        "b": PoolSettings(on_lost="keep"),
    }


def test_without_pools_there_is_one(tmp_path):
    assert read(tmp_path, "scheduler: {type: round_robin}").pools == {
        "default": PoolSettings(scheduler="round_robin")
    }


def test_every_problem_is_reported_with_its_path(tmp_path):
    with pytest.raises(BadSettings) as raised:
        read(
            tmp_path,
            """
            resource_pools:
              - {pool_name: "", colour: red}
              - {pool_name: a b}
              - {pool_name: c, scheduler: {type: lottery}}
              - {pool_name: c, scheduler: {type: priority, default_priority: 100}}
              - {pool_name: e, max_aux_containers_per_agent: -1}
              - {pool_name: f, on_lost: wait}
              - {pool_name: g, on_lost: fence, fence_after_s: 3}
            """,
        )
    for part in (
        "resource_pools[0].colour is not a field",
        "resource_pools[0].pool_name: resource pool name cannot be empty",
        "resource_pools[1].pool_name: 'a b'",
        "resource_pools[2]: Invalid enum value 'lottery' - at `scheduler.type`",
        "resource_pools[3].scheduler.default_priority: priority must be between 1 and 99",
        "resource_pools[4].max_aux_containers_per_agent must be 0 or more",
        "resource_pools[5]: Invalid enum value 'wait' - at `on_lost`",
        "resource_pools[6].fence_after_s: 3: it must be 10 s or more",
    ):
        assert part in str(raised.value).replace("`$.", "`"), part


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "resource_pools: 3", "resource_pools: [3]"])
def test_what_is_no_configuration_is_refused(tmp_path, text):
    with pytest.raises(BadSettings, match=r"pools\.yaml"):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadSettings, match="cannot read the resource pools in"):
        read_pools(tmp_path / "none.yaml")


class Unready:
    """A runner that cannot decide at first, and then says this."""

    def __init__(self, refusal):
        self.refusal, self.commands = refusal, []

    async def command(self, command, call):
        self.commands.append(command)
        if len(self.commands) < 3:
            raise unavailable("the state is being reloaded")
        if self.refusal is not None:
            raise self.refusal


@pytest.mark.parametrize("refusal", [None, invalid("no such pool")])
def test_the_configuration_is_sent_until_it_is_decided(tmp_path, monkeypatch, refusal):
    """A reload refuses all that waits; a scheduler that stands still before an event must not end by it."""
    monkeypatch.setattr(app, "RETRY_S", 0.0)
    path, runner = tmp_path / "pools.yaml", Unready(refusal)
    path.write_text("resource_pools: [{pool_name: a}]")
    sending = app._configure_pools(SimpleNamespace(runner=runner), path)
    if refusal is None:
        asyncio.run(sending)
    else:
        with pytest.raises(Refused, match="no such pool"):
            asyncio.run(sending)
    assert runner.commands == [read_pools(path)] * 3
