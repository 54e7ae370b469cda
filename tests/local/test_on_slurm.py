"""`det deploy slurm` before and after there is a cluster; tests/full runs it with a real Slurm."""

import pytest

from services.local.home import Home, Plan
from tests.fixtures.service_processes import run_module


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))

    def verb(*words, commands=("sbatch", "squeue", "scancel")):
        for name in commands:
            output_file = tmp_path / f"{name}.says"
            output_file.touch()
            (tmp_path / name).write_text(
                f'#!/bin/bash\necho {name} $@ >> {tmp_path}/words\necho "$(<{output_file})"\n'
            )
            (tmp_path / name).chmod(0o755)
        return run_module("determined.cli", "deploy", "slurm", *words)

    return verb


def pools(tmp_path, text):
    (tmp_path / "pools.yaml").write_text(text)
    return tmp_path / "pools.yaml"


SLURM = "resource_pools: [{pool_name: gpu, provider: {type: slurm}}]"


@pytest.mark.parametrize(
    ("text", "words", "commands", "says"),
    [
        (SLURM, (), ("squeue",), "sbatch, scancel not on PATH"),
        ("resource_pools: [{pool_name: gpu}]", (), None, "no pool has a provider of the type slurm"),
        ("[", (), None, "cannot read the resource pools"),
        (SLURM, ("--host", "::"), None, "name an address by which Slurm's nodes reach this machine"),
    ],
)
def test_impossible_setups_are_reported_before_anything_starts(run, tmp_path, text, words, commands, says):
    more = {"commands": commands} if commands else {}
    done = run("up", pools(tmp_path, text), *words, **more)
    assert done.returncode == 1
    assert says in done.stderr
    assert not (tmp_path / "home").exists()


def test_down_cancels_the_jobs_of_this_cluster_alone(run, tmp_path):
    home = Home("determined", tmp_path / "home")
    home.write("plan.json", {"name": "determined"})
    cluster = home.secret("cluster-id").read_text()
    run("status")
    lines = [
        f"7|RUNNING|n1|steadfast.{cluster}.gpu-1",
        "8|RUNNING|n1|steadfast.other.gpu-1",
        f"9|PENDING|(Resources)|steadfast.{cluster}.gpu-2",
        "10|RUNNING|n1|a|b",
    ]
    (tmp_path / "squeue.says").write_text("\n".join(lines))
    output = run("status").stdout
    assert "job 7: worker gpu-1, running n1\n" in output
    assert "job 9: worker gpu-2, pending (Resources)\n" in output
    assert "job 8" not in output
    done = run("down")
    assert "was not running, 2 jobs cancelled" in done.stdout
    assert "scancel --quiet 7 9" in (tmp_path / "words").read_text().splitlines()


def test_programs_find_the_broker_where_it_listens():
    assert Plan(name="x").broker_url(4222) == "nats://127.0.0.1:4222"
    assert Plan(name="x", broker_host="fd00::1", tls=True).broker_url(1) == "tls://[fd00::1]:1"


def test_a_script_for_a_worker_by_hand_has_the_settings_of_the_cluster_that_is_here(run, tmp_path):
    file = pools(tmp_path, SLURM)
    elsewhere = run("render", file, "gpu")
    assert "no cluster 'determined' here: the script has the settings of this shell" in elsewhere.stderr
    assert "STEADFAST_NATS_URL" not in elsewhere.stdout
    home = Home("determined", tmp_path / "home")
    home.write_plan(Plan(name="determined", agents=0, pools_file=str(file)))
    done = run("render", file, "gpu")
    cluster = home.secret("cluster-id").read_text()
    assert f"#SBATCH --job-name=steadfast.{cluster}.gpu-by-hand\n" in done.stdout
    for name in ("NATS_URL", "MASTER_URL", "WORKER_SIGNING", "TRIAL_SIGNING", "SEALING_KEY", "BLOBS"):
        assert f"export STEADFAST_{name}=" in done.stdout
    assert "scheduler" not in done.stdout
