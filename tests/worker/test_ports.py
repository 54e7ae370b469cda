"""Four ports each, never the same, and the same on every node."""

import socket

import pytest

from worker.ports import BLOCKS, FIRST, NoFreePorts, Ports, block, block_number, choose, is_free


def test_neighbours_in_the_log_share_no_port():
    taken = set()
    for position in range(7, 7 + BLOCKS):
        ports = set(block(position).all())
        assert len(ports) == 4
        assert not taken & ports
        taken |= ports
    assert (min(taken), max(taken)) == (FIRST, FIRST + 4 * BLOCKS - 1)
    assert max(taken) < 32768


def test_all_nodes_find_the_same_ports():
    assert block(123456789) == block(123456789)


def test_clusters_that_share_a_host_begin_elsewhere():
    assert block(block_number(40, "one")) == block(block_number(40, "one"))
    assert block(block_number(40, "one")) != block(block_number(40, "other"))
    assert block_number(41, "one") == block_number(40, "one") + 1


def test_one_node_takes_its_own_block_when_it_is_free():
    assert choose(12, (), lambda port: True) == block(12)


def test_what_the_host_uses_and_what_others_hold_is_passed_over():
    busy = block(12).comm_2
    assert choose(12, block(13).all(), lambda port: port != busy) == block(14)


def test_the_last_block_is_followed_by_the_first():
    assert choose(BLOCKS - 1, block(BLOCKS - 1).all(), lambda port: True) == Ports(
        FIRST, FIRST + 1, FIRST + 2, FIRST + 3
    )


def test_none_left():
    with pytest.raises(NoFreePorts, match=str(FIRST)):
        choose(3, (), lambda port: False)


def test_a_listener_makes_a_port_unfree():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


def let_go():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_port_without_listener_is_free():
    # Another process may take one that is let go.
    assert any(is_free(let_go()) for _ in range(10))
