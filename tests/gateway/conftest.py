"""Fixtures of a gateway without a network."""

from __future__ import annotations

import pytest
import structlog

from tests.gateway.harness import Harness


@pytest.fixture(scope="session", autouse=True)
def plain_tracebacks():
    """By itself structlog prints every variable of every frame: seconds, where one is an application."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.dev.ConsoleRenderer(colors=False)]
    )
    yield
    structlog.reset_defaults()


@pytest.fixture
def gateway(tmp_path):
    """A gateway that `determined` is logged in to."""
    harness = Harness(tmp_path)
    harness.log_in()
    yield harness
    harness.close()
