"""Torch's launcher with real processes: environment, failures, what is left (launchers spec)."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.fixtures.ports import reserved_port

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
SHOWN = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
    "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RESTART_COUNT", "OMP_NUM_THREADS", "USE_TORCH_DISTRIBUTED", "DET_CHIEF_IP", "MINE",
)  # fmt: skip
SHOW = [
    sys.executable,
    "-c",
    f"import json, os, sys; print(json.dumps([{{n: os.environ.get(n) for n in {SHOWN!r}}}, sys.argv[1:]]))",
]


def by_rank(output):
    """Environment and arguments, by the prefix of the line."""
    lines = (line.partition("] ") for line in output.splitlines() if "{" in line)
    return {prefix: json.loads(text) for prefix, _, text in lines}


def expected(rank, size, local_rank, local_size, group, groups, port):
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size), "GROUP_RANK": str(group), "GROUP_WORLD_SIZE": str(groups),
        "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost" if groups == 1 else "127.0.0.1", "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_MAX_RESTARTS": "0", "TORCHELASTIC_RESTART_COUNT": "0",
        "OMP_NUM_THREADS": "1" if local_size > 1 else None,
        "USE_TORCH_DISTRIBUTED": "True", "DET_CHIEF_IP": "127.0.0.1", "MINE": "a b",
    }  # fmt: skip


def new_interpreter(words, **options):
    return subprocess.Popen([sys.executable, *words], start_new_session=True, **options)


def test_two_slots(node):
    two = node(python=new_interpreter)
    code, out, err = two.run("--", *SHOW, "a", "--", "b c")
    assert code == 0, err
    assert by_rank(out) == {
        f"[rank={rank}": [expected(rank, 2, rank, 2, 0, 1, two.port), ["a", "--", "b c"]] for rank in (0, 1)
    }


@pytest.mark.parametrize("slots", [0, 1])
def test_one_process(node, slots):
    only_node = node((slots,))
    code, out, err = only_node.run(*SHOW)
    assert code == 0, err
    assert by_rank(out) == {"[rank=0": [expected(0, 1, 0, 1, 0, 1, only_node.port), []]}


def test_nodes_of_different_size(node):
    port = reserved_port()
    nodes = [node((2, 1), rank, port) for rank in (0, 1)]
    processes = [each.start("--", *SHOW) for each in nodes]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert by_rank(outputs[0][0] + outputs[1][0]) == {
        "[rank=0": [expected(0, 3, 0, 2, 0, 2, port), []],
        "[rank=1": [expected(1, 3, 1, 2, 0, 2, port), []],
        "[rank=2": [expected(2, 3, 0, 1, 1, 2, port), []],
    }


def test_overrides_win(node):
    code, out, err = node().run("--nproc_per_node", "3", "--", *SHOW)
    assert code == 0, err
    assert sorted(by_rank(out)) == ["[rank=0", "[rank=1", "[rank=2"]


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ("if [ $RANK = 1 ]; then exit 3; fi; sleep 600", "rank 1 exited with code 3"),
        ("if [ $RANK = 0 ]; then kill -9 $$; fi; sleep 600", "rank 0 was ended by SIGKILL"),
        ("if [ $RANK = 1 ]; then exit 0; fi; sleep 0.5; exit 7", "rank 0 exited with code 7"),
    ],
)
def test_one_rank_ends_the_others_and_is_named(node, script, last):
    code, _, err = node().run("sh", "-c", script)
    assert code == 1
    assert err.splitlines()[-1] == last
    assert "Traceback" not in err


def left(session):
    """Processes of a launcher's session."""
    listing = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(session)], capture_output=True, text=True)
    return [row for row in listing.stdout.splitlines() if "Z" not in row]


def test_sigterm_reaches_every_rank(node):
    # torch's launcher and ours may both pass the signal on, the second while the first is handled.
    script = "trap 'trap \"\" TERM; echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    process = node().start("sh", "-c", script)
    first_lines = {process.stdout.readline() for _ in range(2)}
    assert first_lines == {"[rank=0] ready\n", "[rank=1] ready\n"}
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert sorted(out.splitlines()) == ["[rank=0] bye", "[rank=1] bye"]
    assert process.returncode == 143


@pytest.mark.parametrize("victim", ["wrap_rank", "worker"])
def test_whatever_is_killed_nothing_is_left(node, victim):
    process = node().start("sh", "-c", "echo $$ $PPID; exec sleep 600")
    worker, wrapper = (int(word) for word in process.stdout.readline().split()[1:])
    os.kill({"wrap_rank": wrapper, "worker": worker}[victim], signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode != 0
    deadline = time.monotonic() + 60
    while left(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left(process.pid) == []


def test_without_torch_one_line_says_what_to_do(node, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    made = node()
    start = (
        "import importlib.util as u, sys; real = u.find_spec; "
        "u.find_spec = lambda n, *a: None if n == 'torch' else real(n, *a); "
        "import determined.launch.torch_distributed as t; sys.exit(t.main(['true']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", start],
        env=os.environ | {"DET_INFO_DIR": str(made._folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the training environment has no PyTorch" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["horovod", "deepspeed"])
def test_a_framework_that_is_missing(node, name):
    made = node()
    done = subprocess.run(
        [sys.executable, "-m", f"determined.launch.{name}", "true"],
        env={"PATH": "", "DET_INFO_DIR": str(made._folder), "DET_RESOURCES_ID": "r"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"determined.launch.{name}: the training environment has no" in done.stderr
    assert "determined.launch.torch_distributed" in done.stderr
    assert "Traceback" not in done.stderr
