"""Local training in a folder of its own."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture(autouse=True)
def own_folder(folder):
    """For each test, also for those that do not look into it."""
