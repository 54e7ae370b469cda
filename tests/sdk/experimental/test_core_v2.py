"""`core_v2` with several ranks, of which the first alone talks to the cluster."""

import pytest

from determined.common.api.errors import MasterNotFoundException
from determined.experimental import core_v2
from tests.sdk.core.thread_ranks import run_ranks


@pytest.mark.parametrize(
    ("storage", "error"),
    [(None, MasterNotFoundException), ({"type": "shared_fs", "host_path": "/tmp"}, ValueError)],
)
def test_no_rank_waits_for_a_chief_that_cannot_begin(client_home, monkeypatch, storage, error):
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 0}')

    def begin(dist):
        defaults = core_v2.DefaultConfig(name="outside")
        return core_v2.init_context(defaults=defaults, distributed=dist, checkpoint_storage=storage)

    assert [type(outcome) for outcome in run_ranks(2, begin)] == [error] * 2
