"""The block `provider` of a pool in the configuration file."""

import pytest

from services.kit.settings import BadSettings
from services.scheduler.pools import read_pools
from services.scheduler.providers import parse_seconds, read_provider


def test_the_names_of_0_25_mean_the_same():
    settings = {
        "type": "slurm",
        "min_instances": 1,
        "max_instances": 3,
        "max_idle_agent_period": "1h30m",
        "max_agent_starting_period": "90s",
        "notice_period": 30,
        "slots_per_instance": 4,
        "slurm": {"partition": "gpu"},
    }
    provider, problems = read_provider("p", settings)
    assert problems == []
    assert (provider.min_instances, provider.max_instances, provider.slots_per_instance) == (1, 3, 4)
    assert (provider.max_idle_s, provider.max_starting_s, provider.notice_s) == (5400.0, 90.0, 30.0)


def test_a_pool_without_a_provider_has_none():
    assert read_provider("p", None) == (None, [])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ([], "p: expected a mapping with `type`, one of process, slurm"),
        ({}, "p: Object missing required field `type`"),
        ({"type": "aws"}, "p: Invalid enum value 'aws'"),
        ({"type": "process", "max_instance": 1}, "p.max_instance is not a field"),
        ({"type": "process", "slurm": {}}, "p.slurm: the type of this pool is process"),
        (
            {"type": "process", "max_idle_agent_period": "soon"},
            "p.max_idle_agent_period: 'soon' is not a duration",
        ),
        ({"type": "process", "min_instances": 3, "max_instances": 2}, "min_instances 3 and max_instances 2"),
        ({"type": "process", "slots_per_instance": -1}, "p.slots_per_instance is -1"),
        (
            {"type": "process", "max_agent_starting_period": 0},
            "max_agent_starting_period must be more than 0",
        ),
    ],
)
def test_invalid_values_are_reported_with_their_path(settings, says):
    provider, problems = read_provider("p", settings)
    assert provider is None or problems
    assert any(says in problem for problem in problems), problems


def test_durations():
    assert [parse_seconds(text) for text in ("20m", "1d", 5, 0)] == [1200.0, 86400.0, 5.0, 0.0]
    assert [parse_seconds(text) for text in ("", "m", "1x", -1, True, None)] == [None] * 6


def test_the_file_of_pools_has_it(tmp_path):
    path = tmp_path / "pools.yaml"
    path.write_text(
        "resource_pools:\n- {pool_name: a, provider: {type: process, max_instances: 2}}\n- {pool_name: b}"
    )
    pools = read_pools(path).pools
    assert pools["a"].provider.max_instances == 2
    assert pools["b"].provider is None
    path.write_text("resource_pools: [{pool_name: a, provider: {type: cloud}}]")
    with pytest.raises(BadSettings, match=r"resource_pools\[0\].provider: Invalid enum value 'cloud'"):
        read_pools(path)
