"""A pod that is to end waits for what runs in it, and not for ever."""

import msgspec
import pytest

from tests.fixtures.own_time import set_time
from tests.worker.test_orders import order
from worker import until_idle
from worker.orders import Orders


@pytest.fixture
def wait(tmp_path, monkeypatch):
    """Runs it in a time that passes only by its sleeping; what happens then is the test's."""
    clock = [0.0]

    def run(seconds, happens=lambda at: None):
        def sleep(s):
            clock[0] += s
            happens(clock[0])

        set_time(monkeypatch, until_idle, sleep=sleep, monotonic=lambda: clock[0])
        monkeypatch.setattr("sys.argv", ["until_idle", str(tmp_path), str(seconds)])
        until_idle.main()
        return clock[0]

    return run


def test_it_waits_until_the_last_run_is_over(wait, tmp_path):
    orders = Orders(tmp_path)
    orders.save(order(id="1.a.1"))
    orders.save(order(id="1.b.1"))

    def happens(at):
        if at >= 5:
            orders.save(msgspec.structs.replace(order(id="1.a.1"), over=True))
        if at >= 9:
            orders.save(msgspec.structs.replace(order(id="1.b.1"), over=True))

    assert wait(60, happens) == 9


def test_it_waits_no_longer_than_there_is_time(wait, tmp_path):
    Orders(tmp_path).save(order())
    assert wait(60) == 60


def test_an_idle_worker_is_not_waited_for(wait):
    assert wait(60) == 0
