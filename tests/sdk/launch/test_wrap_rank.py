"""Prefixes, exit codes, signals of `wrap_rank` (launchers spec, section 8)."""

import os
import signal
import subprocess
import sys
import time

import pytest

from determined.launch import _ends

WRAP = [sys.executable, "-m", "determined.launch.wrap_rank"]


def wrap(*arguments, variables=None, **more):
    env = {**os.environ, **(variables or {})}
    return subprocess.run([*WRAP, *arguments], capture_output=True, check=False, env=env, timeout=60, **more)


def sh(script):
    return ["sh", "-c", script]


@pytest.mark.parametrize(("rank", "shown"), [("0", b"0"), ("007", b"7"), ("A,B", b"3"), ("NONE,B", b"5")])
def test_the_rank(rank, shown):
    done = wrap(rank, "--", "echo", "hi", variables={"A": "3", "B": "5"})
    assert (done.returncode, done.stdout) == (0, b"[rank=%s] hi\n" % shown)


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ("NONE", b"rank environment variable is set to NONE, but it is not in os.environ"),
        ("-1", b"is set to -1, but it is not in os.environ"),
        ("WORD", b"the rank in WORD is 'x', not a number"),
        ("", b"is not in os.environ"),
    ],
)
def test_no_rank(rank, message, tmp_path):
    mark = tmp_path / "mark"
    done = wrap(rank, "--", "touch", str(mark), variables={"WORD": "x"})
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not mark.exists()


def test_no_command():
    done = wrap("0")
    assert done.returncode == 2
    assert b"usage" in done.stderr


def test_a_command_that_is_not_there():
    done = wrap("0", "no-such-program")
    assert done.returncode == 127
    assert done.stderr == b"no-such-program: No such file or directory\n"


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_codes(script, code):
    assert wrap("0", *sh(script)).returncode == code


def test_streams_stay_apart_and_bytes_are_not_decoded():
    done = wrap("1", *sh(r"printf 'a\n\377b\n'; printf 'c\n' >&2"))
    assert done.stdout == b"[rank=1] a\n[rank=1] \xffb\n"
    assert done.stderr == b"[rank=1] c\n"


def test_lines_end_at_carriage_returns_and_at_the_end():
    done = wrap("1", *sh(r"printf '10%%\r20%%\r\nlast'"))
    assert done.stdout == b"[rank=1] 10%\n[rank=1] 20%\n[rank=1] last\n"


def test_options_and_separators_belong_to_the_command():
    show = [sys.executable, "-c", "import sys; print(sys.argv[1:])"]
    assert wrap("0", "--", *show, "-h", "--", "x").stdout == b"[rank=0] ['-h', '--', 'x']\n"
    assert wrap("0", *show, "--", "x").stdout == b"[rank=0] ['--', 'x']\n"


def test_input_is_handed_on():
    assert wrap("0", "cat", input=b"hello\n").stdout == b"[rank=0] hello\n"


def test_an_unfinished_line_is_shown_after_a_while():
    with subprocess.Popen([*WRAP, "0", *sh("printf 'question? '; read x")], stdin=-1, stdout=-1) as process:
        assert process.stdout.readline() == b"[rank=0] question? \n"
        process.communicate(b"\n")


def test_a_straggler_that_holds_the_output_is_not_waited_for(tmp_path):
    # Of its own session, so that it lives on; it ends by itself, or with this test.
    straggler = tmp_path / "pid"
    done = wrap("0", *sh(f"setsid sleep 600 & echo $! > {straggler}; echo done"))
    assert done.stdout == b"[rank=0] done\n"
    os.kill(int(straggler.read_text()), signal.SIGKILL)


def test_signals_reach_the_command():
    script = "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([*WRAP, "0", *sh(script)], stdout=-1) as process:
        assert process.stdout.readline() == b"[rank=0] ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b"[rank=0] got\n"
        assert process.wait() == 5


def test_the_command_dies_with_it():
    with subprocess.Popen([*WRAP, "0", *sh("echo $$; exec sleep 600")], stdout=-1) as process:
        pid = int(process.stdout.readline().split()[-1])
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not os.path.exists(f"/proc/{pid}")


def test_where_a_node_has_streams_the_output_goes_there(tmp_path):
    for name in ("stdout.log", "stderr.log"):
        (tmp_path / name).touch()
    start = (
        "import pathlib, sys, determined.launch.wrap_rank as w; "
        f"w.NODE_STREAMS = pathlib.Path({str(tmp_path)!r}); sys.exit(w.main())"
    )
    program = [sys.executable, "-c", start]
    assert subprocess.run([*program, "4", "--", "echo", "x"], capture_output=True, check=True).stdout == b""
    assert (tmp_path / "stdout.log").read_bytes() == b"[rank=4] x\n"
    command = [*program, "--no-redirect-stdio", "4", "--", "echo", "y"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"[rank=4] y\n"


@pytest.mark.parametrize("closes_its_output", [False, True])
def test_a_command_that_does_not_listen_to_a_launcher_is_killed(tmp_path, closes_its_output):
    patched = "import sys, determined.launch.wrap_rank as w; w.TOLD_TO_END_S = 0.3; sys.exit(w.main())"
    deaf = "trap '' TERM; echo up; while :; do sleep 0.1; done"
    deaf = deaf.replace("; while", "; exec >&- 2>&-; while") if closes_its_output else deaf
    notes = tmp_path / "ends"
    _ends.begin(notes)
    process = subprocess.Popen(
        [sys.executable, "-c", patched, "1", *sh(deaf)],
        env=os.environ | {"DET_RANK_ENDS": str(notes)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"[rank=1] up\n"
    process.terminate()
    assert process.wait(timeout=60) == 137
    assert [line.split()[1:] for line in notes.read_text().splitlines()] == [["1", "-1"], ["1", "137"]]
    process.stdout.close()
