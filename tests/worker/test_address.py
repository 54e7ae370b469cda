"""The address that other hosts are told."""

from worker.address import source_address_for


def test_a_broker_on_this_host_is_reached_by_loopback():
    assert source_address_for("127.0.0.1", 4222) == "127.0.0.1"


def test_no_way_to_the_broker():
    assert source_address_for("no-such-host.invalid", 4222) == "127.0.0.1"
