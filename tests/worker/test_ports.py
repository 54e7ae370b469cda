"""Four ports each, never the same."""

import socket

import pytest

from worker.ports import NoPort, Ports, choose, is_free


def test_the_bases_when_all_is_free():
    assert choose((), lambda port: True).all() == (12350, 12360, 12365, 29400)


def test_no_two_allocations_share_any():
    taken = set()
    for _ in range(20):
        chosen = choose(taken, lambda port: True).all()
        assert len(set(chosen)) == 4
        assert not taken & set(chosen)
        taken |= set(chosen)


def test_what_the_host_uses_is_passed_over():
    assert choose((), lambda port: port not in (12350, 29400)) == Ports(12351, 12360, 12365, 29401)


def test_none_left():
    with pytest.raises(NoPort, match="12350"):
        choose((), lambda port: False)


def test_a_listener_makes_a_port_unfree():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_a_port_without_listener_is_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert is_free(port)
