"""Fixtures for everything that talks to a gateway."""

from __future__ import annotations

import pytest

from tests.sdk.fake_gateway import FakeGateway


@pytest.fixture
def gateway():
    served = FakeGateway()
    yield served
    served.close()


@pytest.fixture
def client_home(tmp_path, monkeypatch):
    """An empty directory for the client's files, no DET_ variables, retries without pauses."""
    for name in ("MASTER", "MASTER_ADDR", "USER", "PASS", "USER_TOKEN", "SESSION_TOKEN", "DEBUG"):
        monkeypatch.delenv(f"DET_{name}", raising=False)
    home = tmp_path / "client-home"
    monkeypatch.setenv("DET_DEBUG_CONFIG_PATH", str(home))
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 5, "backoff_factor": 0}')
    return home
