"""A program sees the same, says the same and ends alike in a new interpreter and from the fork server."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.fixtures.fork_server import SHARED_VARIABLE, ForkServer

SURROUNDINGS = """
import atexit, json, os, signal, sys, warnings
main = sys.modules["__main__"]
atexit.register(lambda: print("the end"))
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": globals().get("__file__"),
    "main": vars(main) is globals(), "cwd": os.getcwd(), "environment": dict(os.environ),
    "filters": [str(each) for each in warnings.filters], "words": sys.orig_argv,
    "tests": [name for name in sys.modules if name.split(".")[0] in ("pytest", "tests", "determined")],
    "signals": [str(signal.getsignal(n)).partition(" at ")[0] for n in sorted(signal.valid_signals())],
    "group": os.getpgid(0) == os.getpid(), "files": sorted(os.listdir("/proc/self/fd"))[:3],
    "streams": [[s.fileno(), s.encoding, s.errors, s.line_buffering, s.write_through, type(s.buffer).__name__]
                for s in (sys.stdin, sys.stdout, sys.stderr)],
}, default=str))
print("asked", sys.stdin.read())
"""
THREAD = "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()"
PROGRAMS = {
    "surroundings": ["-c", SURROUNDINGS, "a", "--b"],
    "exception": ["-c", "def f():\n    1 / 0\nf()"],
    "chained": ["-c", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e"],
    "syntax": ["-c", "1 +"],
    "exit code": ["-c", "import sys; print('said', end=''); sys.exit(7)"],
    "exit text": ["-c", "raise SystemExit('bad')"],
    "interrupt": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT); input()"],
    "killed": ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"],
    "left": ["-c", "import os; os._exit(3)"],
    "thread": ["-c", THREAD],
    "child": ["-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1)'], check=True)"],
    "worker": [
        "-c",
        "import multiprocessing as m; m.get_context('fork').Process(target=print, args=(1,)).start()",
    ],
    "module": ["-m", "json.tool", "--no-such-option"],
    "no module": ["-m", "no_such_module"],
}


@pytest.fixture(scope="module")
def cold():
    """A server with nothing imported, so that it starts at once."""
    server = ForkServer()
    yield server
    server.close()


def new_interpreter(words, **options):
    return subprocess.Popen([sys.executable, *words], start_new_session=True, **options)


def outcome(start, words, folder, text=True):
    environment = os.environ | {"MINE": "a b", "ODD": "\udcff", "PYTHONPATH": f"{folder}{os.pathsep}/x"}
    environment.pop("HOME", None)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = start(words, env=environment, cwd=folder, text=text, **pipes)
    out, err = process.communicate("word" if text else b"word", timeout=100)
    return process.returncode, out, err


@pytest.mark.parametrize("words", PROGRAMS.values(), ids=PROGRAMS)
def test_alike(cold, tmp_path, words):
    expected = outcome(new_interpreter, words, tmp_path)
    assert outcome(cold.start, words, tmp_path) == expected
    assert any(expected)


@pytest.mark.parametrize("how", ["file", "module"])
def test_a_file_and_a_module(cold, tmp_path, how):
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "it.py"
    file.write_text(SURROUNDINGS + "undefined\n")
    words = [str(file), "x"] if how == "file" else ["-m", "deep.it", "x"]
    code, out, err = outcome(cold.start, words, tmp_path)
    assert (code, out, err) == outcome(new_interpreter, words, tmp_path)
    assert code == 1
    assert json.loads(out.splitlines()[0])["argv"] == [str(file), "x"]
    assert "undefined" in err


def test_bytes(cold, tmp_path):
    words = ["-c", "import sys; sys.stdout.buffer.write(bytes(range(256)))"]
    assert outcome(cold.start, words, tmp_path, text=False) == (0, bytes(range(256)), b"")


def test_output_to_files_and_nowhere(cold, tmp_path):
    with (tmp_path / "out").open("w") as file:
        words = ["-c", "import sys; print('here'); print('gone', file=sys.stderr); print(repr(input()))"]
        process = cold.start(words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL)
    assert process.communicate(timeout=100) == (None, None)
    assert process.returncode == 1
    assert (tmp_path / "out").read_text() == "here\n"


def test_while_it_runs(cold):
    code = "import signal; print(input(), flush=True); signal.pause()"
    with cold.start(["-c", code], stdin=-1, stdout=-1, text=True) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.stdin.write("there\n")
        process.stdin.flush()
        assert process.stdout.readline() == "there\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.01)
        assert Path(f"/proc/{process.pid}/cwd").resolve() == Path.cwd()
        process.terminate()
        assert process.wait(100) == process.poll() == -signal.SIGTERM
        process.kill()


def test_chance_differs(cold):
    words = ["-c", "import random, uuid; print(random.random(), uuid.uuid4())"]
    both = [cold.start(words, stdout=-1).communicate(timeout=100)[0] for _ in range(2)]
    assert both[0] != both[1]


def test_what_needs_a_new_interpreter_is_refused(cold):
    with pytest.raises(ValueError, match="-O needs a new interpreter"):
        cold.start(["-O", "x.py"])
    with pytest.raises(ValueError, match=r"PYTHON\*"):
        cold.start(["-c", ""], env=os.environ | {"PYTHONHASHSEED": "17"})


@pytest.fixture
def side_by_side(monkeypatch):
    """Servers as in the processes of `pytest -n`."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv(SHARED_VARIABLE, folder)
        yield


PARENTS = """
import os, sys
stat = open(f"/proc/{os.getppid()}/stat").read()
print("colorsys" in sys.modules, os.getppid(), stat.rpartition(")")[2].split()[1])
"""


def parents(server):
    output, _ = server.start(["-c", PARENTS], stdout=-1, text=True).communicate(timeout=100)
    return output.split()


def test_servers_of_several_processes_share_imports_and_nothing_else(side_by_side):
    first, second, other = ForkServer(["colorsys"]), ForkServer(["colorsys"]), ForkServer(["no_such_module"])
    (warm, parent, common), (also_warm, another, same), (cold, _, elsewhere) = map(
        parents, (first, second, other)
    )
    assert (warm, also_warm, cold) == ("True", "True", "False")
    assert common == same != elsewhere
    assert parent != another
    with second.start(["-c", "input()"], stdin=-1, text=True) as process:
        first.close()
        assert process.poll() is None
        process.communicate("said", timeout=100)
        assert process.returncode == 0
    assert parents(second)[1] == another
    second.close()
    other.close()


STARTER = """
import os, sys
from tests.fixtures.fork_server import ForkServer
server = ForkServer(["colorsys"])
code = "import os; print(os.getppid(), flush=True); os.fork(); os.kill(0, 19)"
child = server.start(["-c", code], stdout=-1)
parent = int(child.stdout.readline())
starter = int(open(f"/proc/{parent}/stat").read().rpartition(")")[2].split()[1])
print(child.pid, parent, *[starter] * (starter != os.getpid()), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("way", ["killed", "closed"])
def test_nothing_is_left(request, monkeypatch, way, shared):
    """A child that does not listen, its own child and the server, when the tests end or are killed."""
    monkeypatch.delenv(SHARED_VARIABLE, raising=False)
    if shared:
        request.getfixturevalue("side_by_side")
    script = STARTER + "server.close()\n"
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True) as tests:
        sessions = [int(word) for word in tests.stdout.readline().split()]
        assert len(sessions) == 2 + shared
        if way == "killed":
            tests.kill()
        tests.communicate(timeout=100)
    deadline = time.monotonic() + 60
    while rows := _of_sessions(*sessions):
        assert time.monotonic() < deadline, rows
        time.sleep(0.02)


def _of_sessions(*sessions):
    words = ["ps", "-o", "pid=,stat=,args=", "-s", ",".join(map(str, sessions))]
    listing = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    return [row for row in listing.splitlines() if "Z" not in row.split()[1]]


@pytest.mark.live
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_torch_is_warm_and_unused(fork_server):
    code = """
import os, sys
warm = "torch._dynamo" in sys.modules and "determined" not in sys.modules
import numpy, torch
print(warm, torch.cuda.is_initialized(), len(os.listdir("/proc/self/task")))
print(numpy.random.random(), torch.rand(1))
"""
    outputs = [fork_server.start(["-c", code], stdout=-1, text=True).communicate()[0] for _ in range(2)]
    (first, numbers), (second, other) = (output.splitlines() for output in outputs)
    assert first == second == "True False 1"
    assert set(numbers.split()).isdisjoint(other.split())


def test_who_dies_while_a_child_is_being_started_leaves_the_server_to_the_others():
    server = ForkServer()
    try:
        answer, theirs = socket.socketpair()
        with theirs, open(os.devnull, "r+b") as nothing:
            answer.close()
            socket.send_fds(server._control, [b"+"], [theirs.fileno(), *[nothing.fileno()] * 3])
        child = server.start(["-c", "print('there')"], stdout=subprocess.PIPE, text=True)
        assert (child.communicate()[0], child.returncode) == ("there\n", 0)
    finally:
        server.close()
