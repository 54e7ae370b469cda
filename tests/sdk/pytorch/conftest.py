"""Local training in a folder of its own."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

# Models this small gain nothing from a second thread, whose waiting takes a whole core.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def own_folder(folder):
    """For each test, also for those that do not look into it."""
    torch.manual_seed(7)
