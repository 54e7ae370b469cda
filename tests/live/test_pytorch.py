"""A script of the PyTorch Trainer runs unchanged without a cluster, below torchrun, and on a cluster."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.reading import reported

pytestmark = pytest.mark.timeout(900)
EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorch_mnist"


@pytest.fixture
def example(tmp_path):
    for needed in ("torch", "sklearn"):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    return shutil.copytree(
        EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("mnist", "__pycache__")
    )


TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.mark.full
@pytest.mark.parametrize("launcher", [[], TORCHRUN], ids=len)
def test_the_script_runs_without_a_cluster(example, tmp_path, launcher):
    done = subprocess.run(
        [sys.executable, *launcher, "train.py"],
        cwd=example,
        env=os.environ | {"XDG_DATA_HOME": str(tmp_path / "data"), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # The whole log of a run is the chief's, so each checkpoint is told of once.
    assert done.stderr.count("reported validation metrics: steps_completed=24") == 1
    assert done.stderr.count("reported validation metrics: steps_completed=48") == 1


def test_the_same_script_runs_on_a_cluster(cluster, example):
    id = cluster.create("trainer.yaml", example, "--config", "reproducibility.experiment_seed=7")
    assert cluster.wait_for_end(id, 180)["state"] == "STATE_COMPLETED"
    ((_, _, rows),) = reported(cluster, id)
    assert [at for kind, at in rows if kind == "validation"] == [24, 48]
