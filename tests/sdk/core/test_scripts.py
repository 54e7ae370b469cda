"""Whole scripts in the style of the Core API guide's stages, off cluster and against a cluster in memory."""

import os
import pathlib
import runpy
import subprocess
import sys
import textwrap

import msgspec
import pytest

import det_contracts
import determined
from tests.sdk.core.fake_transport import FakeTransport

START = """
def main(step):
    total = 0
    for _ in range(100):
        total += step
        print("total", total)

if __name__ == "__main__":
    main(1)
"""

METRICS = """
import logging
import determined as det

def main(core_context, step):
    total = 0
    for batch in range(100):
        total += step
        done = batch + 1
        if done % 10 == 0:
            core_context.train.report_training_metrics(steps_completed=done, metrics={"x": total})
    core_context.train.report_validation_metrics(steps_completed=done, metrics={"x": total})

if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format=det.LOG_FORMAT)
    with det.core.init() as core_context:
        main(core_context, 1)
"""

SEARCH = """
import determined as det

def save(path, total, done, trial_id):
    path.joinpath("state").write_text(f"{total},{done},{trial_id}")

def load(path, trial_id):
    total, done, of_trial = map(int, path.joinpath("state").read_text().split(","))
    return (total, done) if of_trial == trial_id else (total, 0)

def main(core_context, latest, trial_id, step):
    total, batch, saved = 0, 0, None
    if latest is not None:
        with core_context.checkpoint.restore_path(latest) as path:
            total, batch = load(path, trial_id)
    for op in core_context.searcher.operations():
        while batch < op.length:
            total += step
            batch += 1
            if batch % 10 == 0:
                core_context.train.report_training_metrics(steps_completed=batch, metrics={"x": total})
                op.report_progress(batch)
                with core_context.checkpoint.store_path({"steps_completed": batch}) as (path, uuid):
                    save(path, total, batch, trial_id)
                saved = batch
                if core_context.preempt.should_preempt():
                    return
        core_context.train.report_validation_metrics(steps_completed=batch, metrics={"x": total})
        op.report_completed(total)
    if saved != batch:
        with core_context.checkpoint.store_path({"steps_completed": batch}) as (path, uuid):
            save(path, total, batch, trial_id)

if __name__ == "__main__":
    info = det.get_cluster_info()
    assert info is not None, "this script runs on a cluster only"
    with det.core.init() as core_context:
        main(core_context, info.latest_checkpoint, info.trial.trial_id, info.trial.hparams["increment_by"])
"""

NO_NETWORK = """
import socket
def refuse(*args, **kwargs):
    raise OSError("the network was touched")
socket.socket.__init__ = socket.create_connection = socket.getaddrinfo = refuse
"""


@pytest.fixture
def bare_python(tmp_path):
    """Run a script where nothing but the library itself is installed and no socket can be made."""
    site = tmp_path / "site"
    site.mkdir()
    for package in (determined, det_contracts, msgspec):
        where = pathlib.Path(package.__file__).parent
        (site / where.name).symlink_to(where)

    def run(script):
        file = tmp_path / "script.py"
        file.write_text(textwrap.dedent(script))
        code = f"import sys, runpy; sys.path.insert(0, {str(site)!r}); exec({NO_NETWORK!r}); "
        code += f"runpy.run_path({str(file)!r}, run_name='__main__'); print('loaded:', *sys.modules)"
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "DET_INFO_DIR": str(tmp_path / "none"),
        }
        return subprocess.run(
            [sys.executable, "-S", "-c", code], env=variables, capture_output=True, text=True
        )

    return run


def test_start_and_metrics_run_in_an_empty_environment(bare_python):
    assert "total 100" in bare_python(START).stdout
    ran = bare_python(METRICS)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("reported training metrics") == 10
    assert "INFO: [" in ran.stderr
    assert "steps_completed=100, metrics={'x': 100}" in ran.stderr
    loaded = set(ran.stdout.split("loaded:")[1].split())
    assert loaded & {"torch", "numpy", "nats", "minio", "yaml"} == set()


def test_a_script_for_clusters_says_so_off_cluster(bare_python):
    ran = bare_python(SEARCH)
    assert ran.returncode != 0
    assert "on a cluster only" in ran.stderr


def run_on_cluster(tmp_path, script):
    file = tmp_path / "script.py"
    file.write_text(script)
    runpy.run_path(str(file), run_name="__main__")


def test_metrics_script_on_a_cluster(on_cluster, tmp_path):
    transport = FakeTransport()
    on_cluster(transport)
    run_on_cluster(tmp_path, METRICS)
    steps = [(kind, steps) for kind, steps, _ in transport.log]
    assert steps == [("training", n) for n in range(10, 101, 10)] + [("validation", 100)]


def test_search_script_is_preempted_and_resumed_without_losing_or_repeating_a_step(on_cluster, tmp_path):
    first = FakeTransport([15, 35], preempt_after=2)
    on_cluster(first)
    run_on_cluster(tmp_path, SEARCH)
    steps = ["training", "checkpoint", "validation", "completed", "training", "checkpoint"]
    assert first.kinds() == [*steps, "training", "checkpoint", "acknowledged"]
    latest = [entry[1] for entry in first.log if entry[0] == "checkpoint"][-1]
    assert latest.metadata == {"steps_completed": 30}

    second = FakeTransport([35])
    on_cluster(second, latest_checkpoint=latest.uuid)
    run_on_cluster(tmp_path, SEARCH)
    assert second.log[0] == ("validation", 35, {"x": 70})
    assert second.kinds() == ["validation", "completed", "acknowledged", "checkpoint"]


def test_a_new_trial_starts_from_the_weights_at_batch_0(on_cluster, tmp_path):
    source = FakeTransport([10])
    on_cluster(source)
    run_on_cluster(tmp_path, SEARCH.replace("info.trial.trial_id", "6"))
    latest = source.log[1][1]
    follower = FakeTransport([10])
    on_cluster(follower, latest_checkpoint=latest.uuid)
    run_on_cluster(tmp_path, SEARCH)
    assert follower.log[0] == ("training", 10, {"x": 40})
