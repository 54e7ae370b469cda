"""A process of a trial, and a tiny model made from its configuration."""

import contextlib

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

from determined._training import pace as _pace  # noqa: E402 - needs torch
from tests.sdk.pytorch.trial_process import TrialProcess  # noqa: E402 - needs torch

# Models this small gain nothing from a second thread, whose waiting takes a whole core.
torch.set_num_threads(1)


@pytest.fixture
def process(monkeypatch, tmp_path):
    """Makes this process that of a trial."""
    return made(monkeypatch, tmp_path)


@pytest.fixture(scope="session")
def own_process(tmp_path_factory):
    """As a context: makes this process that of a trial until the context ends."""

    @contextlib.contextmanager
    def own():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_pace, "EVERY_S", 0.0)
            yield made(patch, tmp_path_factory.mktemp("own"))

    return own


def made(monkeypatch, folder):
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.chdir(folder)
    return TrialProcess(monkeypatch, folder)
