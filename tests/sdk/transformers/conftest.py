"""A process of a trial, and a tiny model made from its configuration."""

import pytest

# Models this small gain nothing from a second thread, whose waiting takes a whole core.
pytest.importorskip("torch", reason="torch is not installed").set_num_threads(1)
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

from tests.sdk.pytorch.trial_process import TrialProcess


@pytest.fixture
def process(monkeypatch, tmp_path):
    """Makes this process that of a trial."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return TrialProcess(monkeypatch, tmp_path)
