"""A process of a trial, and a tiny model made from its configuration."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

from tests.sdk.pytorch.trial_process import TrialProcess  # noqa: E402 - needs torch

# Models this small gain nothing from a second thread, whose waiting takes a whole core.
torch.set_num_threads(1)


@pytest.fixture
def process(monkeypatch, tmp_path):
    """Makes this process that of a trial."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return TrialProcess(monkeypatch, tmp_path)
