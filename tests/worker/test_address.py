"""The address that other hosts are told."""

from worker.address import towards


def test_a_broker_on_this_host_is_reached_by_loopback():
    assert towards("127.0.0.1", 4222) == "127.0.0.1"


def test_no_way_to_the_broker():
    assert towards("no-such-host.invalid", 4222) == "127.0.0.1"
