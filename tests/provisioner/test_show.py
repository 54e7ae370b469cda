"""`det deploy slurm render` prints what the provisioner would submit."""

import pytest

from tests.fixtures.service_processes import run_module

POOLS = """
resource_pools:
- {pool_name: gpu, provider: {type: slurm, slots_per_instance: 2, slurm: {partition: main}}}
- {pool_name: here, provider: {type: process}}
"""


def show(*words):
    return run_module("determined.cli", "deploy", "slurm", "render", *words)


@pytest.fixture
def pools(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path / "home"))
    (tmp_path / "pools.yaml").write_text(POOLS)
    return tmp_path / "pools.yaml"


def test_the_script_is_what_sbatch_takes_and_no_id_that_the_pool_gives_out(pools):
    done = show(pools, "gpu")
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=steadfast.steadfast.gpu-by-hand\n")
    assert "#SBATCH --partition=main\n" in done.stdout
    assert "export STEADFAST_WORKER_SLOTS=2\n" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("pool", ["here", "nowhere"])
def test_a_pool_without_slurm_has_none(pools, pool):
    done = show(pools, pool)
    assert f"has no pool '{pool}' whose provider is slurm" in done.stderr
    assert done.returncode != 0


def test_without_a_pool_all_scripts_are_shown_and_none_is_an_error(pools):
    assert show(pools).stdout.count("#!/bin/bash\n") == 1
    pools.write_text("resource_pools: [{pool_name: here, provider: {type: process}}]")
    assert "has no pool whose provider is slurm" in show(pools).stderr
