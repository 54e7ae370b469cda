"""Which failures another try would meet again, told by how the output of a run ends."""

import os
import traceback

import pytest

from determined._training.reducer import scalar
from worker.output_spool import last_lines
from worker.permanent_failure import cause
from worker.shim.command import CannotStart, Command
from worker.shim.spool import STDERR, STDOUT, Spool


@pytest.fixture
def ran(tmp_path):
    """A function that makes a run of its last lines."""
    (tmp_path / "spool").mkdir()

    def make(*lines, stream=STDERR):
        spool = Spool(str(tmp_path / "spool"))
        spool.append(stream, [line.encode() for line in lines])
        spool.close()
        return tmp_path

    return make


MISSING = "ModuleNotFoundError: No module named 'nowhere'"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (1, MISSING),
        (1, "SyntaxError: invalid syntax"),
        (1, "IndentationError: unexpected indent"),
        (1, "determined.errors.InvalidExperimentException: wrap the model"),
        (1, "/venv/bin/python3: No module named train"),
        (2, "/venv/bin/python3.11: can't open file '/run/trian.py': [Errno 2] No such file or directory"),
        (127, "sh: 1: trian: not found"),
        (126, "sh: 1: ./train.sh: Permission denied"),
    ],
)
def test_what_is_wrong_for_good(ran, code, line):
    assert cause(ran("Traceback (most recent call last):", line), code) == line


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (1, ["RuntimeError: out of memory"]),
        (1, ["a line before", f"WARNING: {MISSING}"]),
        (1, [MISSING, "it went on without", "OSError: disk"]),
        (2, [MISSING]),
        (0, [MISSING]),
        (137, [MISSING]),
        (1, []),
    ],
)
def test_what_may_be_otherwise_next_time(ran, code, lines):
    assert cause(ran(*lines), code) == ""


@pytest.mark.parametrize(
    "words",
    [["./train.py"], ["no-such-command"], ["./no_format"], ["sh", "-c", "x" * 200_000], ["sh", "-c", "x \0"]],
)
def test_what_no_shell_has_started(tmp_path, words):
    (tmp_path / "train.py").write_text("#!/bin/sh")
    (tmp_path / "no_format").write_bytes(b"\0\1\2")
    (tmp_path / "no_format").chmod(0o755)
    with pytest.raises(CannotStart) as failure:
        Command(words, str(tmp_path), dict(os.environ), None)
    assert cause(tmp_path, 127, str(failure.value)) == str(failure.value)


def test_a_variable_without_a_name(tmp_path):
    with pytest.raises(CannotStart) as failure:
        Command(["true"], str(tmp_path), {**os.environ, "": "x"}, None)
    assert cause(tmp_path, 127, str(failure.value)) == str(failure.value)


def test_a_host_that_is_short_of_processes_may_start_it_next_time(tmp_path):
    message = "cannot start 'train': Resource temporarily unavailable"
    assert cause(tmp_path, 127, message) == cause(tmp_path, 127, "x: No such file or directory") == ""


def test_the_metric_that_a_search_misses(ran):
    with pytest.raises(RuntimeError, match="not among the validation metrics accuracy") as missing:
        scalar({"accuracy": 1.0}, "acuracy")
    *_, line = traceback.format_exception(missing.value)
    assert cause(ran("Traceback (most recent call last):", line.strip()), 1) == line.strip()


def test_what_is_printed_to_stdout_is_the_scripts_own(ran):
    assert cause(ran(MISSING, stream=STDOUT), 1) == ""


def test_a_rank_may_end_with_it_and_its_launcher_go_on(ran):
    run = ran("[rank=0] all well", f"[rank=1] {MISSING}", "rank 1 exited with code 1", "torchrun: failed")
    assert cause(run, 1) == MISSING


def test_a_run_without_output(tmp_path):
    assert cause(tmp_path, 1) == ""


def test_only_the_end_is_read(ran):
    assert [line.text for line in last_lines(ran(*map(str, range(500))), most=2)] == ["498", "499"]
