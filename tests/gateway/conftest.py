"""Fixtures of a gateway without a network."""

from __future__ import annotations

import pytest

from tests.gateway.harness import Harness


@pytest.fixture
def gateway(tmp_path):
    """A gateway that `determined` is logged in to."""
    harness = Harness(tmp_path)
    harness.log_in()
    yield harness
    harness.close()
