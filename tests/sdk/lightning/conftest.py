"""A process of a trial in a folder of its own."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from tests.sdk.pytorch.trial_process import TrialProcess  # noqa: E402 - needs torch

torch.set_num_threads(1)


@pytest.fixture
def process(monkeypatch, tmp_path):
    """Makes this process that of a trial."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return TrialProcess(monkeypatch, tmp_path)
