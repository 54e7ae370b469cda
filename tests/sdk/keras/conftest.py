"""Local training in a folder of its own, with the backend torch."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
keras = pytest.importorskip("keras", reason="keras is not installed")

# Models this small gain nothing from a second thread, whose waiting takes a whole core.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_folder(folder):
    """For each test, also for those that do not look into it."""
