"""When a task that is reached through the gateway says where it is."""

import os
import socket

import pytest

from determined.exec import _serving

MINE, OTHER = os.geteuid(), os.geteuid() + 1
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(port, user, state="0A", local="0100007F"):
    return (
        f"   0: {local}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {user} 0 1\n"
    )


@pytest.mark.parametrize(
    ("v4", "v6", "ours"),
    [
        ([line(17000, MINE)], [], True),
        ([], [line(17000, MINE, local="0" * 32)], True),
        ([], [], False),
        ([line(17001, MINE)], [], False),
        ([line(17000, MINE, state="01")], [], False),
        ([line(17000, OTHER)], [], False),
        ([line(17000, OTHER, local="0200007F"), line(17000, MINE)], [], True),
        ([line(17000, MINE)], None, True),
    ],
)
def test_a_port_that_another_user_has_taken_is_not_announced(tmp_path, v4, v6, ours):
    """Whoever is there would be sent what is meant for the task, and the key for it."""
    tables = [tmp_path / "tcp", tmp_path / "tcp6"]
    for table, lines in zip(tables, (v4, v6), strict=True):
        if lines is not None:
            table.write_text(HEAD + "".join(lines))
    assert _serving.listens_here(17000, tables) == ours


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_it_is_found_as_the_system_lists_it(family, host):
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        port = server.getsockname()[1]
        assert not _serving.listens_here(port)
        server.listen()
        assert _serving.listens_here(port)
