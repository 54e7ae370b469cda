"""One command under a shim: what it prints, what it is sent, how it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.kit import host_processes
from services.kit.since_boot import since_boot
from tests.fixtures.other_users import open_folder
from worker import process
from worker.last_contact import ContactFile
from worker.shim.command import OOM_SCORE
from worker.shim.life import ESCAPED, FENCED, OUT_OF_MEMORY
from worker.shim.pace import BURST_BYTES, LINE_BYTES
from worker.workdir import remove

pytestmark = pytest.mark.live


def test_output_of_both_streams_and_the_code(runs):
    run = runs.start("sh", "-c", "echo out; echo err >&2; exit 3")
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.signal, run_exit.left_over, run_exit.lost_lines) == (3, None, 0, 0)
    assert sorted(runs.lines(run)) == [("stderr", "err"), ("stdout", "out")]


def test_where_memory_runs_out_the_kernel_ends_the_task_and_not_its_shim(runs):
    run = runs.start("sh", "-c", "cat /proc/self/oom_score_adj; exec sleep 1000")
    own = int(Path("/proc/self/oom_score_adj").read_text())
    shim = process._read_running(run).shim.pid
    assert int(Path(f"/proc/{shim}/oom_score_adj").read_text()) == own
    runs.wait_for_line(run, str(min(own + OOM_SCORE, 1000)))
    process.kill(run)
    runs.ended(run)


@pytest.fixture
def small_memory():
    """The file through which a process enters a control group with 64 MiB of memory."""
    v1, v2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    root, limit = (v1, "memory.limit_in_bytes") if v1.is_dir() else (v2, "memory.max")
    group = root / f"steadfast-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(64 << 20))
    except OSError as error:
        pytest.skip(f"no control groups can be made here: {error}")
    yield group / "cgroup.procs"
    group.rmdir()


@pytest.mark.parametrize("how", ["exec ", "", "setsid "])
def test_a_run_that_the_kernel_ended_says_so(runs, small_memory, how):
    eats = f"{how}{sys.executable} -c 'x = bytearray(200 << 20)'"
    run = runs.start("sh", "-c", f"echo $$ > {small_memory}; {eats}")
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.message) == (137, OUT_OF_MEMORY)
    assert ("stderr", OUT_OF_MEMORY) in runs.lines(run)


def test_bytes_returns_and_an_unfinished_line(runs):
    code = r"import os; os.write(1, b'caf\xe9\x00!\n10%\r20%\r\n\nlast')"
    run = runs.python(code)
    runs.ended(run)
    assert [text for _, text in runs.lines(run)] == ["caf\ufffd\ufffd!", "10%", "20%", "", "last"]


def test_100_mb_without_a_newline(runs):
    run = runs.start("sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo all; exec sleep 1000")
    runs.wait_for_line(run, "all")
    shim = process._read_running(run).shim.pid
    status = Path(f"/proc/{shim}/status").read_text()
    peak_kb = int(status.partition("VmHWM:")[2].split()[0])
    texts = [text for _, text in runs.lines(run)]
    assert texts.pop() == "all"
    assert sum(text.count("x") for text in texts) == 100_000_000
    assert set("".join(texts)) == {"x", "…"}
    assert peak_kb < 64 * 1024


def test_a_disk_that_takes_nothing_does_not_hold_the_command_up(runs):
    run = runs.prepare(sys.executable, "-c", "for n in range(100_000): print('line', n)")
    (run / "spool").mkdir()
    (run / "spool" / f"{0:020d}.log").symlink_to("/dev/full")
    process.start(run)
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.lost_lines) == (0, 100_000)


def test_who_prints_without_end_waits_and_loses_nothing(runs, monkeypatch):
    """Before, it took the worker, the intake and the metrics service as much of a processor as it could."""
    run = runs.dir("run")
    lines = 200_000
    code = f"import sys\nfor n in range({lines}): sys.stdout.write(f'{{n:01000}}\\n')\nprint('done')"
    env = {"PATH": "/usr/bin:/bin"}
    rate = 20 * 2**20
    process.prepare(run, [sys.executable, "-c", code], Path("/"), env, output_bytes_s=rate)
    began = time.monotonic()
    process.start(run)
    assert runs.ended(run).code == 0
    took = time.monotonic() - began
    cost = lines * (LINE_BYTES + 1001)
    assert took > 0.5 * (cost - BURST_BYTES) / rate > 0
    numbers = [int(text) for _, text in runs.lines(run)[:-1]]
    assert numbers == list(range(lines))


def test_who_waits_while_printing_is_killed_at_once(runs):
    run = runs.dir("run")
    process.prepare(run, ["yes"], Path("/"), {"PATH": "/usr/bin:/bin"}, output_bytes_s=1)
    process.start(run)
    spool = run / "spool"
    size = [-1]

    def waits():
        before, size[0] = size[0], sum(segment.stat().st_size for segment in spool.glob("*.log"))
        return before == size[0] > 0

    runs.eventually(waits, "the pause")
    process.kill(run)
    assert runs.ended(run).code == 137


def test_a_run_prints_no_more_than_it_may(runs):
    run = runs.dir("run")
    code = "for n in range(3000): print('x' * 1000)"
    env = {"PATH": os.environ["PATH"]}
    process.prepare(run, [sys.executable, "-c", code], runs.folder, env, output_bytes=1 << 20)
    process.start(run)
    run_exit = runs.ended(run)
    assert run_exit.code == 0
    texts = [text for _, text in runs.lines(run)]
    assert "the output of this run has reached 1 MiB" in texts.pop()
    assert len(texts) + run_exit.lost_lines == 3000
    assert len(texts) < 1200


@pytest.mark.parametrize("argv", [["no-such-program"], ["/etc/passwd"]])
def test_a_command_that_cannot_start(runs, argv):
    run = runs.start(*argv)
    run_exit = process.read_exit(run)
    assert run_exit.code == 127
    assert f"cannot start '{argv[0]}'" in run_exit.message
    assert runs.lines(run) == [("stderr", run_exit.message)]


def test_a_folder_that_is_not_there(runs):
    run = runs.start("true", cwd="/no/such/folder")
    assert process.read_exit(run).message == "cannot start '/no/such/folder': No such file or directory"


def test_arguments_survive(runs):
    words = ["a b", "it's", '"', "$HOME", "", "--", "ü\n"]
    run = runs.start(sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", *words)
    runs.ended(run)
    assert runs.lines(run) == [("stdout", ascii(words))]


def test_the_environment_is_only_what_was_given_bytes_included(runs):
    code = "import os; print(sorted(os.environb.items()))"
    run = runs.start(sys.executable, "-c", code, ODD="\udcff", LC_ALL="C.UTF-8")
    runs.ended(run)
    ((_, text),) = runs.lines(run)
    assert text == str([(b"LC_ALL", b"C.UTF-8"), (b"ODD", b"\xff"), (b"PATH", os.environb[b"PATH"])])


def test_it_starts_with_standard_streams_alone_and_default_signals(runs):
    ids = "ps -o pid=,sid=,pgid= -p $$"
    run = runs.start("sh", "-c", f"cat; ls /proc/self/fd | wc -l; yes | head -n 1; {ids}")
    runs.ended(run)
    # Standard streams and the folder that ls reads; `yes` would complain if SIGPIPE were ignored.
    (_, fds), (_, yes), (_, ids) = runs.lines(run)
    assert (fds, yes) == ("4", "y")
    assert len(set(ids.split())) == 1


def test_death_by_signal_is_128_and_its_number(runs):
    run = runs.start("sh", "-c", "kill -KILL $$")
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.signal) == (137, 9)


LISTEN = r"""
import os, signal, sys, time
def heard(number, _):
    print("got " + signal.Signals(number).name)
for name in "INT TERM HUP USR1 USR2 WINCH".split():
    signal.signal(getattr(signal, "SIG" + name), heard)
child = os.fork()
print("child listens\n" if child == 0 else "parent listens\n", end="")
while True:
    time.sleep(1000)
"""


def test_signals_reach_the_command_alone(runs):
    run = runs.python(LISTEN)
    runs.wait_for_line(run, "child listens")
    runs.wait_for_line(run, "parent listens")
    for name in ("INT", "TERM", "HUP", "USR1", "USR2", "WINCH"):
        assert process.send(run, getattr(signal, f"SIG{name}"))
        runs.wait_for_line(run, f"got SIG{name}")
    got = [text for _, text in runs.lines(run) if text.startswith("got")]
    assert got == [f"got SIG{name}" for name in ("INT", "TERM", "HUP", "USR1", "USR2", "WINCH")]


def test_kill_ends_everything_at_once(runs):
    run = runs.python("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LISTEN)
    runs.wait_for_line(run, "child listens")
    assert process.kill(run)
    assert runs.ended(run).code == 137
    assert not process.kill(run)


def is_alive(run):
    """Processes that carry the run's mark, apart from shims."""
    mark = f"MARK={run}".encode()
    return [pid for pid in host_processes.all_pids() if mark in process._environment(pid)]


LEFT = {
    "in its group": "sleep 1000 & exit 5",
    "in its own session": "setsid sleep 1000 & exit 5",
    "as a daemon": "(setsid sh -c 'sleep 1000 & exit 0' &) ; exit 5",
}


@pytest.mark.parametrize("script", LEFT.values(), ids=LEFT)
def test_what_is_left_over_is_ended(runs, script):
    run = runs.start("sh", "-c", script, MARK=str(runs.dir()))
    run_exit = runs.ended(run)
    assert run_exit.code == 5
    assert run_exit.left_over >= 1
    assert is_alive(run) == []
    assert "that the command had left behind" in runs.lines(run)[-1][1]


CHAIN = """
import os, sys, time
def chain(path):
    end = time.time() + 60
    while time.time() < end:
        if os.fork():
            os._exit(0)
        with open(path, "w") as file:
            file.write("here")
"""
MULTIPLIES = {
    "each forks the next and ends": "chain(sys.argv[1])",
    "in sessions of their own": "os.setsid(); chain(sys.argv[1])",
    "several at once": "[os.fork() for _ in range(3)]; chain(sys.argv[1])",
}


@pytest.fixture
def signs():
    """A folder in which every user can write. Other runs of pytest close their common one as they start."""
    with open_folder("signs-") as folder:
        folder.chmod(0o777)
        yield folder


@pytest.mark.parametrize("how", ["ends", "killed"])
@pytest.mark.parametrize("script", MULTIPLIES.values(), ids=MULTIPLIES)
def test_what_multiplies_ends_with_its_run(runs, signs, script, how):
    """A process that forks the next and ends is gone before a list of all processes is complete."""
    if os.geteuid() == 0:
        script = "os.setuid(64003)\n" + script
    sign = signs / "sign"
    wait = "while True: time.sleep(1)" if how == "killed" else "pass"
    code = f"{CHAIN}\nif os.fork() == 0:\n" + "".join(f"    {line}\n" for line in script.splitlines())
    code += f"while not os.path.exists(sys.argv[1]): time.sleep(0.01)\nprint('on', flush=True)\n{wait}"
    run = runs.start(sys.executable, "-c", code, str(sign))
    runs.wait_for_line(run, "on")
    if how == "killed":
        process.kill(run)
    runs.ended(run)
    assert ESCAPED not in [text for _, text in runs.lines(run)]
    sign.unlink(missing_ok=True)
    time.sleep(0.3)
    assert not sign.exists()


def test_what_is_left_over_gets_time_to_say_goodbye(runs):
    code = """
import os, signal, time
told, tell = os.pipe()
if os.fork():
    os.read(told, 1)
    os._exit(0)
def leave(*_):
    print("saved")
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
print("waits")
os.write(tell, b"+")
time.sleep(1000)
"""
    run = runs.python(code)
    assert runs.ended(run).code == 0
    assert [text for _, text in runs.lines(run)][:2] == ["waits", "saved"]


def test_what_will_not_leave_is_killed(runs):
    run = runs.start("sh", "-c", "trap '' TERM; (while :; do sleep 0.1; done) & exit 0", MARK=str(runs.dir()))
    assert runs.ended(run).code == 0
    assert is_alive(run) == []


def test_a_deleted_folder_leaves_no_shim(runs, eventually):
    run = runs.start("sleep", "1000")
    running = process._read_running(run)
    process.kill(run)
    remove(run)
    eventually(lambda: not (running.shim.is_alive() or running.command.is_alive()), "the end of both")
    remove(run)


def test_it_loads_next_to_nothing():
    """It starts for every task: each module costs all of them."""
    root = Path(process.__file__).parents[1]
    code = f"import sys; sys.path.append({str(root)!r}); import worker.shim.life; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True).split()
    own = {name.removeprefix("worker.shim.") for name in loaded if name.startswith("worker.shim.")}
    assert own == {"life", "command", "control_group", "lines", "pace", "small_files", "spool"}
    assert {name for name in loaded if name.startswith("services.")} == {
        "services.kit",
        "services.kit.host_processes",
    }
    assert not {"typing", "subprocess", "logging", "asyncio", "msgspec", "traceback", "ctypes"} & set(loaded)


class Contact:
    """The file that a worker keeps; a test says when there was contact."""

    def __init__(self, path):
        self.path = path
        self._file = ContactFile(path)

    def ago(self, seconds):
        self._file.record(since_boot() - seconds)

    def fence(self, after_s):
        return process.Fence(str(self.path), after_s)


@pytest.fixture
def contact(tmp_path):
    return Contact(tmp_path / "contact")


def fenced(runs, fence, *argv):
    process.prepare(runs.dir(), argv, runs.folder, {"PATH": os.environ["PATH"]}, fence)
    process.start(runs.dir())
    return runs.dir()


def test_a_host_that_is_out_of_touch_ends_what_it_runs_and_all_below_it(runs, contact):
    contact.ago(0)
    child = "setsid sleep 1000 & echo $! > child; sleep 1000"
    run = fenced(runs, contact.fence(600.0), "sh", "-c", child)
    runs.eventually(lambda: (runs.folder / "child").exists() and (runs.folder / "child").read_text().strip())
    pid = int((runs.folder / "child").read_text())
    contact.ago(601)
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.lost) == (137, True)
    assert run_exit.message == FENCED
    assert host_processes.started(pid) is None
    assert ("stderr", FENCED) in runs.lines(run)


def test_a_host_that_is_out_of_touch_begins_nothing(runs, contact):
    """Its worker stood still between the last contact and the start; the run may be elsewhere by now."""
    contact.ago(601)
    run = fenced(runs, contact.fence(600.0), "sh", "-c", "echo begun; touch begun")
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.lost, run_exit.message) == (137, True, FENCED)
    assert runs.lines(run) == [("stderr", FENCED)]
    assert not (runs.folder / "begun").exists()


def test_contact_keeps_a_run_alive(runs, contact):
    contact.ago(540)
    run = fenced(runs, contact.fence(600.0), "sh", "-c", "until [ -e go ]; do sleep 0.02; done")
    for _ in range(3):
        contact.ago(0)
    (runs.folder / "go").touch()
    run_exit = runs.ended(run)
    assert (run_exit.code, run_exit.lost) == (0, False)


@pytest.mark.parametrize("text", ["", "no number", "99999999999999.000"])
def test_what_is_no_time_of_contact_keeps_nothing_alive(runs, tmp_path, text):
    (tmp_path / "contact").write_text(text)
    # Without a contact the time counts from the start of the machine, which may be a minute ago.
    run = fenced(runs, process.Fence(str(tmp_path / "contact"), 0.1), "sleep", "1000")
    assert runs.ended(run).lost


def test_a_run_without_a_fence_needs_no_contact(runs):
    run = runs.start("sh", "-c", "sleep 0.6")
    assert (runs.ended(run).code, process.read_exit(run).lost) == (0, False)
