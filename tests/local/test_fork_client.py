"""Services as forks of one process: like processes of their own, and gone with the one they come from."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.kit import host_processes
from services.local.fork_client import ForkClient
from services.local.home import Home
from services.local.processes import Child, Program

DEADLINE_S = 60.0
ROOT = Path(__file__).parents[2]
APP = """
import os
with open(os.environ["LOADED"], "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
MAIN = """
import json, os, signal, sys
import one.app
facts = [__name__, sys.argv[1:], os.environ.get("WORD"), sorted(os.environ), os.getpid(), os.getppid()]
facts += [signal.getsignal(signal.SIGINT) is signal.default_int_handler]
facts += [sorted(map(int, os.listdir("/proc/self/fd")))]
# One write: another fork writes into the same file.
os.write(1, (json.dumps(facts) + "\\n").encode())
signal.pause()
"""


@pytest.fixture
def forks(tmp_path, monkeypatch):
    """Of a package `one` that is loaded beforehand, and of `two`, which cannot be loaded."""
    for name, app, main in (("one", APP, MAIN), ("two", "raise RuntimeError('broken')", "import two.app")):
        (tmp_path / name).mkdir()
        for file, text in (("__init__", ""), ("app", app), ("__main__", main)):
            (tmp_path / name / f"{file}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("LOADED", str(tmp_path / "loaded"))
    made = ForkClient(tmp_path, ["one", "two"], tmp_path / "server.log")
    yield made
    made.end()


def command(module):
    return [sys.executable, "-P", "-m", module]


async def until(true, explain=lambda: ""):
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, explain()
        await asyncio.sleep(0.01)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def shown(pid):
    """As `ps` shows it."""
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0")


def runs(pid):
    return host_processes.started(pid) is not None


@pytest.mark.live
def test_a_fork_is_like_a_process_of_its_own(forks, tmp_path):
    environment = {"WORD": "hello", "LOADED": os.environ["LOADED"]}
    log = tmp_path / "one.log"

    async def story():
        with log.open("ab") as output:
            first, second = [await forks.start("one", environment, output) for _ in range(2)]
        await until(lambda: len(lines(log)) == 2)
        for facts in map(json.loads, lines(log)):
            name, arguments, word, names, pid, parent, interrupts, descriptors = facts
            assert (name, arguments, word, interrupts) == ("__main__", [], "hello", True)
            assert names == sorted(environment)
            assert pid in (first.pid, second.pid)
            # It has been loaded by the server, once.
            assert lines(tmp_path / "loaded") == [str(parent)]
            # Nothing of the server is open in it; the last one lists the folder.
            assert len(descriptors) == 4, descriptors
            assert shown(pid) == f"steadfast one {tmp_path}"
        first.terminate()
        await first.wait()
        assert not runs(first.pid)
        assert first.returncode is not None
        assert second.returncode is None
        with pytest.raises(ProcessLookupError):
            first.kill()
        second.kill()
        await second.wait()

    asyncio.run(story())


FORKED = """
import asyncio, json, os, sys
from pathlib import Path
from services.local.fork_client import ForkClient
folder = Path(sys.argv[1])
forks = ForkClient(folder, ["one"], folder / "server.log")
forks.fork_server()
async def story():
    with (folder / "one.log").open("ab") as output:
        started = await forks.start("one", dict(os.environ), output)
    print(started.pid, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    started.terminate()
    await started.wait()
    forks.end()
asyncio.run(story())
print("ended", flush=True)
"""


@pytest.mark.live
@pytest.mark.parametrize("killed", [False, True])
def test_a_server_that_is_a_fork_serves_and_ends_with_its_process(forks, tmp_path, killed):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    words = [sys.executable, "-P", "-c", FORKED, str(tmp_path)]
    with subprocess.Popen(words, **pipes, text=True, env=os.environ | {"WORD": "hello"}) as process:
        pid = int(process.stdout.readline())
        asyncio.run(until(lambda: lines(tmp_path / "one.log")))
        (facts,) = map(json.loads, lines(tmp_path / "one.log"))
        name, arguments, word, names, own_pid, server, interrupts, descriptors = facts
        assert (name, arguments, word, own_pid, interrupts) == ("__main__", [], "hello", pid, True)
        assert "WORD" in names
        assert len(descriptors) == 4, descriptors
        assert lines(tmp_path / "loaded") == [str(server)]
        assert server != process.pid
        assert shown(server) == f"steadfast fork-server {tmp_path}"
        if killed:
            process.kill()
            process.communicate()
        else:
            assert process.communicate()[0] == "ended\n"
        asyncio.run(until(lambda: not runs(pid) and not runs(server)))


@pytest.mark.live
def test_without_a_free_process_the_server_is_started_with_the_first_service(forks, tmp_path, monkeypatch):
    def refuse():
        raise BlockingIOError("Resource temporarily unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", refuse)
        before = os.listdir("/proc/self/fd")
        forks.fork_server()
        assert len(os.listdir("/proc/self/fd")) == len(before)

    async def story():
        log = tmp_path / "one.log"
        with log.open("ab") as output:
            service = await forks.start("one", {"LOADED": os.environ["LOADED"]}, output)
        await until(lambda: lines(log))
        service.kill()
        await service.wait()

    asyncio.run(story())


@pytest.mark.live
def test_what_cannot_be_loaded_says_so_itself(forks, tmp_path):
    log = tmp_path / "two.log"

    async def story():
        with log.open("ab") as output:
            broken = await forks.start("two", {}, output)
        await broken.wait()

    asyncio.run(story())
    assert "RuntimeError: broken" in log.read_text()
    assert "two.app cannot be preloaded" in (tmp_path / "server.log").read_text()


@pytest.mark.live
def test_a_child_is_started_again_whoever_of_the_two_was_killed(forks, tmp_path):
    home, log, pids = Home("test", tmp_path), tmp_path / "one.log", []
    program = Program("one", command("one"), dict(os.environ), log)

    async def story():
        child = Child(program, lambda name, pid: pids.append(pid), home.read_request, forks)
        keeping = asyncio.create_task(child.keep_running())
        await until(lambda: len(lines(log)) == 1)
        os.kill(pids[0], signal.SIGKILL)
        await until(lambda: len(lines(log)) == 2)
        [server] = lines(tmp_path / "loaded")
        os.kill(int(server), signal.SIGKILL)
        await until(lambda: len(lines(log)) == 3, lambda: lines(log))
        # Each of them was a fork, the last one of another server.
        assert len(lines(tmp_path / "loaded")) == 2
        await child.stop()
        await keeping

    asyncio.run(story())
    assert not any(map(runs, pids))


@pytest.mark.parametrize(
    ("words", "more", "module"),
    [
        (command("one"), {}, "one"),
        (command("one"), {"WORD": "x"}, "one"),
        (command("one"), {"PYTHONMALLOC": "debug"}, ""),
        (command("one"), {"LD_PRELOAD": "x"}, ""),
        (command("three"), {}, ""),
        (["nats-server", "-P", "-m", "one"], {}, ""),
    ],
)
def test_what_is_forked(forks, words, more, module):
    assert forks.forkable_module(words, dict(os.environ) | more) == module


PRELOAD = """
import gc, sys
from services.local import fork_server
counted = []
gc.callbacks.append(lambda *_: counted.append(None))
fork_server.preload([])
print(len(counted), gc.get_freeze_count() > 0, gc.isenabled(), "pygments.lexer" in sys.modules)
"""


def test_nothing_is_freed_that_was_loaded_for_forks_and_nothing_loaded_that_none_needs():
    """Each fork would fill the holes, and copy the pages around them: 3 MB, when this was measured."""
    done = subprocess.run(
        [sys.executable, "-c", PRELOAD], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "True", "True", "False"]
