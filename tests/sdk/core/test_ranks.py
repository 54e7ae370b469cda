"""Several ranks over real connections: as threads, and as processes where one has to die."""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from determined.core import DistributedContext, _connections, _rendezvous
from tests.fixtures.ports import reserved_port
from tests.sdk.core.socket_ranks import PATIENCE_S, numbers, run_ranks


@pytest.mark.parametrize(("nodes", "per_node"), [(1, 2), (1, 4), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("force_tcp", [False, True])
def test_everybody_gets_what_is_theirs(nodes, per_node, force_tcp):
    def body(dist):
        own = f"rank {dist.rank}"
        return [
            dist.gather(own),
            dist.gather_local(own),
            dist.allgather(own),
            dist.allgather_local(own),
            dist.broadcast(own),
            dist.broadcast_local(own),
        ]

    outcomes = run_ranks(body, nodes, per_node, force_tcp=force_tcp)
    names = [f"rank {rank}" for rank in range(nodes * per_node)]
    for rank, answers in enumerate(outcomes):
        first = rank - rank % per_node
        mine = names[first : first + per_node]
        assert answers == [
            names if rank == 0 else None,
            mine if rank == first else None,
            names,
            mine,
            names[0],
            mine[0],
        ], answers


def test_the_chief_keeps_its_own_object():
    value = {"a": object}
    outcomes = run_ranks(lambda dist: dist.broadcast(value) is value)
    assert outcomes == [True, False]


def test_values_of_many_megabytes():
    def body(dist):
        text = bytes([dist.rank]) * 20_000_000
        everything = dist.allgather(text)
        gathered = dist.gather(text)
        return [t[0] for t in everything], gathered is None or [len(t) for t in gathered]

    assert run_ranks(body, per_node=3) == [
        ([0, 1, 2], [20_000_000] * 3),
        ([0, 1, 2], True),
        ([0, 1, 2], True),
    ]


def test_thousands_of_broadcasts_in_a_row():
    def body(dist):
        return [dist.broadcast(n if dist.rank == 0 else None) for n in range(5000)] == list(range(5000))

    assert run_ranks(body) == [True, True]


def test_ranks_out_of_step_raise():
    def chief_broadcasts(dist):
        if dist.rank == 0:
            dist.broadcast(1)
            return dist.gather(2)
        return dist.gather(3)

    def chief_gathers(dist):
        return dist.gather(1) if dist.rank == 0 else dist.broadcast(2)

    def one_call_more(dist):
        if dist.rank == 1:
            dist.broadcast(0)
        return dist.gather(0)

    for body in (chief_broadcasts, chief_gathers, one_call_more):
        for outcome in run_ranks(body):
            assert isinstance(outcome, RuntimeError), outcome
            assert "out-of-order" in str(outcome)
            assert "rank 1 is in" in str(outcome) or "rank 0 is in" in str(outcome)


def test_large_values_out_of_step_do_not_hang():
    text = "x" * 30_000_000

    def body(dist):
        if dist.rank == 0:
            dist.broadcast(text)
            return dist.broadcast(text)
        return dist.gather(text)

    assert all(isinstance(outcome, RuntimeError) for outcome in run_ranks(body))


def test_nothing_after_close():
    def body(dist):
        dist.close()
        dist.close()
        return dist.allgather(1)

    for outcome in run_ranks(body):
        assert isinstance(outcome, RuntimeError)
        assert "close()" in str(outcome)


def test_a_rank_that_left_is_named():
    def body(dist):
        dist.allgather(0)
        if dist.rank == 2:
            return "left"
        return dist.allgather(1)

    chief, other, left = run_ranks(body, per_node=3)
    assert left == "left"
    for outcome in (chief, other):
        assert isinstance(outcome, RuntimeError)
        assert "rank 2" in str(outcome)


def test_those_who_do_not_come_are_named(monkeypatch, caplog):
    monkeypatch.setattr(_rendezvous, "FIRST_TOLD_S", 0.05)
    listener = _rendezvous.listen("127.0.0.1", 0)
    with caplog.at_level(logging.WARNING), pytest.raises(TimeoutError, match="rank 1, 2 of 3"):
        _rendezvous.lead(listener, 3, patience_s=0.2)
    assert "rank 1, 2 of 3; giving up in " in caplog.text


def test_who_starts_ranks_by_hand_says_how_long_they_wait_for_one_another(monkeypatch):
    monkeypatch.setenv("STEADFAST_JOIN_PATIENCE_S", "0.3")
    address = ("127.0.0.1", reserved_port())
    with pytest.raises(TimeoutError, match=r"0\.3 s \(STEADFAST_JOIN_PATIENCE_S\): .*for rank 1 of 2"):
        DistributedContext(**numbers(0, 1, 2), pub_port=address[1])
    with pytest.raises(TimeoutError, match="rank 1 waiting for the chief"):
        _rendezvous.follow(address, 1, 2)


@pytest.mark.parametrize("text", ["soon", "0", "-3", "nan", "inf"])
def test_a_patience_that_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv("STEADFAST_JOIN_PATIENCE_S", text)
    with pytest.raises(ValueError, match=f"STEADFAST_JOIN_PATIENCE_S must be .* not '{text}'"):
        DistributedContext(**numbers(0, 1, 2), pub_port=reserved_port())


def test_a_chief_who_does_not_come(monkeypatch):
    with pytest.raises(TimeoutError, match="waiting for the chief"):
        _rendezvous.follow(("127.0.0.1", reserved_port()), 1, 2, patience_s=0.2)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match=rf"port {port}.*INTER_TRAIN_PROCESS_COMM_PORT_1"):
            DistributedContext(**numbers(0, 1, 2), pub_port=port)


def test_unknown_connections_do_not_join(caplog):
    listener = _rendezvous.listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    groups = []
    chief = threading.Thread(target=lambda: groups.append(_rendezvous.lead(listener, 2)), daemon=True)
    chief.start()
    with socket.create_connection(address) as stranger:
        stranger.settimeout(PATIENCE_S)
        stranger.sendall(b"\x80\x04evil" * 100)
        assert len(stranger.recv(16)) == 16
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    groups.append(_rendezvous.follow(address, 1, 2))
    chief.join(PATIENCE_S)
    for group in groups:
        group.close()
    assert "refused" in caplog.text


def in_background(function):
    """What it gives or raises, once it is joined."""
    outcomes = []

    def run():
        try:
            outcomes.append(function())
        except RuntimeError as error:
            outcomes.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcomes


def test_one_that_dies_before_all_have_come_ends_the_waiting(monkeypatch):
    monkeypatch.setattr(_rendezvous, "GRACE_S", 0.1)
    monkeypatch.setattr(_rendezvous, "_LOOK_S", 0.02)
    listener = _rendezvous.listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    chief, led = in_background(lambda: _rendezvous.lead(listener, 4))
    joined, wait = threading.Event(), _rendezvous._await_ready
    monkeypatch.setattr(_rendezvous, "_await_ready", lambda link, clock: joined.set() or wait(link, clock))
    other, followed = in_background(lambda: _rendezvous.follow(address, 1, 4))
    # The chief is given up for the victim: who came later would find nobody.
    assert joined.wait(PATIENCE_S)
    victim = [
        _rendezvous._connect(address, 2, 4, channel) for channel in (_connections.DATA, _connections.LIFE)
    ]
    for link in victim:
        link.close()
    for thread in (chief, other):
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "somebody still waits"
    for (outcome,) in (led, followed):
        assert "rank 2 of this job has died before all had joined" in str(outcome)
        assert "3" in str(outcome)


def test_a_chief_that_dies_before_all_have_come_ends_the_waiting(monkeypatch):
    monkeypatch.setattr(_rendezvous, "GRACE_S", 0.1)
    listener = _rendezvous.listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    other, followed = in_background(lambda: _rendezvous.follow(address, 1, 3))
    joined = []
    for _ in range(2):
        connection = listener.accept()[0]
        nonce = _connections.challenge(connection)
        _connections.welcome(connection, nonce, 3, set(), _rendezvous.secret())
        joined.append(connection)
    for connection in (*joined, listener):
        connection.close()
    other.join(PATIENCE_S)
    assert not other.is_alive()
    assert "rank 0 of this job, at" in str(followed[0])
    assert "has died before all had joined" in str(followed[0])


def test_one_that_died_may_come_again(monkeypatch):
    monkeypatch.setattr(_rendezvous, "GRACE_S", PATIENCE_S)
    monkeypatch.setattr(_rendezvous, "_LOOK_S", 0.02)
    listener = _rendezvous.listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    chief, led = in_background(lambda: _rendezvous.lead(listener, 3))
    for link in [
        _rendezvous._connect(address, 1, 3, channel) for channel in (_connections.DATA, _connections.LIFE)
    ]:
        link.close()
    others = [in_background(lambda rank=rank: _rendezvous.follow(address, rank, 3)) for rank in (1, 2)]
    for thread in (chief, *(thread for thread, _ in others)):
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    groups = [led[0], *(followed[0] for _, followed in others)]
    leaving = [in_background(group.close)[0] for group in groups]
    for thread in leaving:
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    "name", ["TORCHELASTIC_RUN_ID", "MASTER_PORT", "PMIX_NAMESPACE", "HOROVOD_GLOO_RENDEZVOUS_PORT"]
)
def test_what_a_launcher_gives_to_all_ranks_tells_its_job_apart(monkeypatch, name):
    for variable in ("DET_SESSION_TOKEN", *_rendezvous._OF_A_JOB):
        monkeypatch.delenv(variable, raising=False)
    by_hand = _rendezvous.secret()
    monkeypatch.setenv(name, "1")
    first = _rendezvous.secret()
    monkeypatch.setenv(name, "2")
    assert len({by_hand, first, _rendezvous.secret()}) == 3


def test_jobs_off_cluster_are_distinguished(monkeypatch, caplog):
    """Two that start at once on one host, by a launcher that tells each job who it is."""
    monkeypatch.delenv("DET_SESSION_TOKEN", raising=False)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-a")
    monkeypatch.setenv("MASTER_PORT", "29500")
    ours = _rendezvous.secret()
    monkeypatch.setenv("MASTER_PORT", "29501")
    assert _rendezvous.secret() != ours
    listener = _rendezvous.listen("127.0.0.1", 0)
    chief, led = in_background(lambda: _rendezvous.lead(listener, 2))
    with socket.create_connection(listener.getsockname()[:2]) as stranger, pytest.raises(_connections.Gone):
        _connections.introduce(stranger, 1, 2, _connections.DATA, ours)
    member = _rendezvous.follow(listener.getsockname()[:2], 1, 2)
    chief.join(PATIENCE_S)
    closing = in_background(led[0].close)[0]
    member.close()
    closing.join(PATIENCE_S)
    monkeypatch.setenv("DET_SESSION_TOKEN", "token")
    assert _rendezvous.secret() == b"token"


@pytest.mark.parametrize("count", [3, _rendezvous._MOST_WAITING + 3])
def test_strangers_that_say_nothing_or_a_byte_hold_up_no_rank(monkeypatch, count):
    monkeypatch.setattr(_rendezvous, "_HANDSHAKE_S", 600.0)
    listener = _rendezvous.listen("127.0.0.1", 0)
    address = listener.getsockname()[:2]
    with contextlib.ExitStack() as strangers:
        for number in range(count):
            stranger = strangers.enter_context(socket.create_connection(address))
            stranger.sendall(b"?" * (number % 2))
        chief, led = in_background(lambda: _rendezvous.lead(listener, 2))
        other, followed = in_background(lambda: _rendezvous.follow(address, 1, 2))
        for thread in (chief, other):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        for group in (*led, *followed):
            group.close()


def test_who_does_not_introduce_itself_in_time_is_refused(monkeypatch, caplog):
    monkeypatch.setattr(_rendezvous, "_HANDSHAKE_S", 0.1)
    listener = _rendezvous.listen("127.0.0.1", 0)
    with socket.create_connection(listener.getsockname()[:2]) as stranger:
        chief, led = in_background(lambda: _rendezvous.lead(listener, 2, patience_s=600))
        stranger.settimeout(PATIENCE_S)
        while stranger.recv(100):
            pass
    monkeypatch.setattr(_rendezvous, "_HANDSHAKE_S", 60.0)
    member = _rendezvous.follow(listener.getsockname()[:2], 1, 2)
    chief.join(PATIENCE_S)
    assert "no introduction within 0.1 s" in caplog.text
    closing = in_background(led[0].close)[0]
    member.close()
    closing.join(PATIENCE_S)


def test_a_job_of_another_size_is_refused():
    listener = _rendezvous.listen("127.0.0.1", 0)
    groups = []
    chief = threading.Thread(target=lambda: groups.append(_rendezvous.lead(listener, 2)), daemon=True)
    chief.start()
    with pytest.raises(RuntimeError, match="a job of 3 processes"):
        _rendezvous.follow(listener.getsockname()[:2], 1, 3)
    groups.append(_rendezvous.follow(listener.getsockname()[:2], 1, 2))
    chief.join(PATIENCE_S)
    for group in groups:
        group.close()


SCRIPT = """
import os, sys, time
from determined.core import DistributedContext
rank = int(sys.argv[1])
dist = DistributedContext(rank=rank, size=3, local_rank=0, local_size=1, cross_rank=rank, cross_size=3,
                          chief_ip="127.0.0.1", pub_port=int(sys.argv[2]))
dist.allgather(rank)
print("met", flush=True)
if rank == int(sys.argv[3]):
    sys.stdin.read()
if sys.argv[4] == "calm" and rank == 0:
    print(dist.broadcast("last"))
elif sys.argv[4] == "calm":
    print(dist.broadcast(None))
else:
    try:
        dist.allgather(rank)
    except RuntimeError as error:
        print(error)
"""


def start_three(mark, how):
    environment = os.environ | {"DET_SESSION_TOKEN": "known to all three"}
    port = str(reserved_port())
    return [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(rank), port, str(mark), how],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]


@pytest.mark.live
@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_rank_ends_the_waiting_of_all(victim):
    processes = start_three(victim, "rough")
    for process in processes:
        assert process.stdout.readline() == "met\n"
    os.kill(processes[victim].pid, signal.SIGKILL)
    output = [process.communicate(timeout=PATIENCE_S)[0] for process in processes]
    for rank, text in enumerate(output):
        if rank != victim:
            assert f"rank {victim}" in text, output


@pytest.mark.live
def test_ranks_may_end_without_a_word_when_all_is_said():
    processes = start_three(-1, "calm")
    output = [process.communicate(timeout=PATIENCE_S)[0] for process in processes]
    assert output == ["met\nlast\n"] * 3
