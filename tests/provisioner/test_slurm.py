"""What Slurm's commands are given, and what is read from what they print; `tests/full` asks Slurm itself."""

import asyncio
import os

import pytest

from services.provisioner.engines.protocol import EngineRefused, EngineUnavailable, ListedWorker
from services.provisioner.engines.slurm import SlurmEngine
from services.provisioner.engines.slurm_script import SlurmSettings, script

LISTED = """\
7|RUNNING|1795390322|None|steadfast.c1.gpu-1
8|PENDING|N/A|Resources|steadfast.c1.gpu-2
9|RUNNING|UNLIMITED|None|steadfast.c1.gpu-3
10|TIMEOUT|1795390322|TimeLimit|steadfast.c1.gpu-4
11|PENDING|N/A|launch failed requeued held|steadfast.c1.gpu-5
12|COMPLETING|1795390322|None|steadfast.c1.gpu-6
13|RUNNING|1795390322|None|steadfast.other.gpu-1
14|RUNNING|1795390322|None|steadfast.c1.cpu-1
15|RUNNING|1795390322|None|a job | of somebody
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """An engine whose commands are scripts of the test; they keep what they were given in files."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(timeout=20.0, output="", **commands):
        for name, text in commands.items():
            path = tmp_path / name
            path.write_text(f'#!/bin/bash\necho "$@" > {tmp_path}/{name}.words\n{text}\n')
            path.chmod(0o755)
        settings = SlurmSettings(partition="main", output=output, command_timeout_s=timeout)
        return SlurmEngine("gpu", 2, "c1", settings)

    return make


def test_jobs_of_this_pool_and_cluster_are_seen(slurm, tmp_path):
    engine = slurm(squeue=f"echo $SLURM_TIME_FORMAT > {tmp_path}/format; cat <<'END'\n{LISTED}END")
    workers = asyncio.run(engine.list_workers())
    assert [
        (worker.worker_id, worker.handle, worker.phase, worker.detail, worker.ends_at) for worker in workers
    ] == [
        ("gpu-1", "7", "running", "job 7", 1795390322.0),
        ("gpu-2", "8", "queued", "job 8: PENDING, Resources", 0.0),
        ("gpu-3", "9", "running", "job 9", 0.0),
        ("gpu-4", "10", "over", "job 10: TIMEOUT, TimeLimit", 0.0),
        ("gpu-5", "11", "over", "job 11: PENDING, launch failed requeued held", 0.0),
        ("gpu-6", "12", "running", "job 12", 1795390322.0),
    ]
    assert (tmp_path / "format").read_text() == "%s\n"


@pytest.mark.parametrize(
    ("reason", "output", "hint"),
    [
        (
            "JobLaunchFailure",
            "/logs/%j.log",
            "slurmd.log says why (the folder of slurm.output must exist there)",
        ),
        ("NonZeroExitCode", "/logs/%j.log", "NonZeroExitCode; what it printed: /logs/7.log"),
        ("NonZeroExitCode", "", "NonZeroExitCode; set slurm.output to keep what it prints"),
        ("TimeLimit", "", "job 7: FAILED, TimeLimit"),
    ],
)
def test_a_job_that_failed_says_where_to_read_why(slurm, reason, output, hint):
    engine = slurm(output=output, squeue=f"echo '7|FAILED|N/A|{reason}|steadfast.c1.gpu-1'")
    (worker,) = asyncio.run(engine.list_workers())
    assert worker.phase == "over"
    assert worker.detail.endswith(hint)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "Unable to contact"),
        ("sleep 60", "did not answer within 0.2 s"),
    ],
)
def test_a_squeue_that_does_not_answer_is_no_empty_list(slurm, command, says):
    with pytest.raises(EngineUnavailable, match=says):
        asyncio.run(slurm(timeout=0.2 if "sleep" in command else 20.0, squeue=command).list_workers())


def test_where_slurm_is_not_installed_the_engine_is_away(slurm, monkeypatch, tmp_path):
    engine = slurm()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineUnavailable, match="squeue cannot be run here"):
        asyncio.run(engine.list_workers())


def test_a_job_is_submitted_with_the_script_of_its_worker(slurm, tmp_path):
    engine = slurm(sbatch=f"cat > {tmp_path}/given; echo '17;cluster'")
    assert asyncio.run(engine.start("gpu-1")) == "job 17"
    script = (tmp_path / "given").read_text()
    assert "#SBATCH --job-name=steadfast.c1.gpu-1\n" in script
    assert "#SBATCH --partition=main\n" in script
    assert "export STEADFAST_WORKER_ID=gpu-1\n" in script


def test_a_refusal_by_slurm_is_quoted_and_an_unclear_answer_is_unknown(slurm):
    with pytest.raises(EngineRefused, match="Invalid partition"):
        asyncio.run(slurm(sbatch="echo 'sbatch: error: Invalid partition' >&2; exit 1").start("gpu-1"))
    with pytest.raises(EngineUnavailable, match="Socket timed out"):
        asyncio.run(slurm(sbatch="echo 'sbatch: error: Socket timed out' >&2; exit 1").start("gpu-1"))


def test_only_the_job_of_that_worker_is_cancelled(slurm, tmp_path):
    worker = ListedWorker(worker_id="gpu-1", handle="7", phase="running")
    asyncio.run(slurm(scancel="true").stop(worker))
    assert (tmp_path / "scancel.words").read_text() == "--quiet --name=steadfast.c1.gpu-1 7\n"


def test_a_job_that_has_ended_meanwhile_is_no_engine_that_is_away(slurm):
    worker = ListedWorker(worker_id="gpu-1", handle="7", phase="running")
    asyncio.run(slurm(scancel="exit 1").stop(worker))
    with pytest.raises(EngineUnavailable, match="Unable to contact"):
        asyncio.run(slurm(scancel="echo Unable to contact slurm controller >&2; exit 1").stop(worker))


def test_a_job_that_can_never_start_is_cancelled_and_one_that_ended_is_left_alone(slurm, tmp_path):
    engine = slurm(scancel="true")
    asyncio.run(
        engine.forget(ListedWorker(worker_id="gpu-1", handle="7", phase="over", detail="job 7: TIMEOUT"))
    )
    assert not (tmp_path / "scancel.words").exists()
    held = ListedWorker(
        worker_id="gpu-1", handle="7", phase="over", detail="job 7: PENDING, launch failed requeued held"
    )
    asyncio.run(engine.forget(held))
    assert (tmp_path / "scancel.words").exists()


def test_jobs_do_not_get_the_settings_of_services(slurm, monkeypatch):
    monkeypatch.setenv("STEADFAST_NATS_CREDENTIALS", "/secret")
    monkeypatch.setenv("STEADFAST_PROVISIONER_HOME", "/home")
    monkeypatch.setenv("STEADFAST_NATS_URL", "nats://broker:4222")
    text = slurm().script("gpu-1")
    assert "STEADFAST_NATS_URL=nats://broker:4222" in text
    assert "CREDENTIALS" not in text
    assert "PROVISIONER" not in text


def test_what_is_set_of_a_pool_is_asked_for_and_quoted():
    settings = SlurmSettings(
        account="lab",
        qos="long",
        time_limit="4:00:00",
        gpus_per_node=4,
        cpus_per_task=16,
        memory="64G",
        extra=("--constraint=a100",),
        setup=("module load cuda",),
        environment={"STEADFAST_WORKER_HOME": "/scratch/it's"},
    )
    payload = {"STEADFAST_NATS_URL": "nats://a b"}
    text = script(settings, cluster_id="c1", worker_id="gpu-1", pool="gpu", slots=4, environment=payload)
    for line in (
        "#SBATCH --account=lab", "#SBATCH --qos=long", "#SBATCH --time=4:00:00", "#SBATCH --gpus-per-node=4",
        "#SBATCH --cpus-per-task=16", "#SBATCH --mem=64G", "#SBATCH --constraint=a100", "#SBATCH --requeue",
        "module load cuda", "export STEADFAST_NATS_URL='nats://a b'", "export STEADFAST_WORKER_GPU=true",
    ):  # fmt: skip
        assert line in text.splitlines()
    # What the pool says comes last, so it counts.
    assert text.index('"/tmp/steadfast-$USER/gpu-1"') < text.index(
        "export STEADFAST_WORKER_HOME='/scratch/it'"
    )
    assert text.endswith("exec python3 -P -m worker\n")
