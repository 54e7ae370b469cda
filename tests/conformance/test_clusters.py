"""A shared cluster runs while tests that may use it do."""

import contextlib
from types import SimpleNamespace

import psutil
import pytest

from tests.fixtures import clusters
from tests.fixtures.local_cluster import LocalCluster, wait_for

SHARES, DOES_NOT = (
    SimpleNamespace(path=clusters.TESTS / name) for name in ("live/test_cli.py", "kit/test_process.py")
)


@pytest.fixture
def happened(monkeypatch):
    """What happens to a stand-in for the shared cluster, which a test has just started."""
    happenings = []

    @contextlib.contextmanager
    def running(cluster):
        happenings.append("starts")
        yield cluster
        happenings.append("stops")

    monkeypatch.setattr(clusters, "running", running)
    monkeypatch.setattr(clusters.Shared, "all", [clusters.Shared("a cluster")])
    clusters.Shared.all[0].start()
    return happenings


def test_it_goes_on_to_the_end_of_those_that_share_it(happened):
    for following in (SHARES, SHARES, None):
        clusters.pytest_runtest_setup(SHARES)
        clusters.pytest_runtest_teardown(following)
    assert happened == ["starts"]


def test_it_is_stopped_before_another_test_and_no_such_test_starts_it(happened):
    clusters.pytest_runtest_teardown(DOES_NOT)
    for following in (DOES_NOT, None):
        clusters.pytest_runtest_setup(DOES_NOT)
        clusters.pytest_runtest_teardown(following)
    assert happened == ["starts", "stops"]


def test_where_the_order_is_another_it_is_started_again(happened):
    clusters.pytest_runtest_teardown(DOES_NOT)
    clusters.pytest_runtest_setup(DOES_NOT)
    clusters.pytest_runtest_teardown(SHARES)
    clusters.pytest_runtest_setup(SHARES)
    assert happened == ["starts", "stops", "starts"]


@pytest.mark.live
@pytest.mark.full
def test_it_has_kept_everything(tmp_path):
    shared = clusters.Shared(LocalCluster(tmp_path / "cluster", slots=1))
    try:
        for times in (1, 2):
            shared.start()
            id = shared.cluster.submit("print('said')")
            assert id == times
            shared.cluster.wait_for_end(id)
            assert any(line.endswith("said") for line in shared.cluster.logs(1))
            shared.stop()
    finally:
        shared.stop()


@pytest.mark.live
@pytest.mark.full
@pytest.mark.expected_log(".*", "all services are killed")
def test_its_first_fork_server_is_forked_and_the_next_one_is_started(local_cluster):
    cluster = local_cluster()
    gateway = psutil.Process(cluster.pid("gateway"))
    server = gateway.parent()
    assert gateway.cmdline()[0].startswith("steadfast gateway ")
    assert server.cmdline()[0].startswith("steadfast fork-server ")
    server.kill()
    wait_for(lambda: cluster.pid("gateway") != gateway.pid, 60, "another gateway")
    another = psutil.Process(cluster.pid("gateway")).parent()
    assert "services.local.fork_server" in another.cmdline()
    cluster.get("me")
