"""The folder that a task of a user works in."""

import subprocess
import types

import pytest

from worker.work_dir import enter, work_dir_of, work_dir_variables


def briefing(task_type, config):
    return types.SimpleNamespace(config=config, task=types.SimpleNamespace(task_type=task_type))


def run(argv, cwd):
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("task_type", "folder"), [("COMMAND", "/data"), ("SHELL", "/data"), ("TRIAL", "")])
def test_tasks_of_people_may_name_a_folder(task_type, folder):
    order = briefing(task_type, {"work_dir": "/data"})
    assert work_dir_of(order) == folder
    assert work_dir_variables(order) == ({"DET_WORKDIR": folder} if folder else {})
    assert work_dir_of(briefing(task_type, {"work_dir": None})) == ""


@pytest.mark.live
def test_the_command_runs_there(tmp_path):
    folder = tmp_path / "it's $HOME"
    folder.mkdir()
    done = run(enter(["sh", "-c", 'pwd; echo "$1"', "x", "a b"], str(folder)), tmp_path)
    assert (done.stdout, done.returncode) == (f"{folder}\na b\n", 0)
    assert run(enter(["sh", "-c", "exit 3"], str(folder)), tmp_path).returncode == 3


@pytest.mark.live
def test_a_folder_that_is_not_there_is_told(tmp_path):
    done = run(enter(["echo", "unreached"], "/no/such"), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "ERROR: work_dir of the configuration: cannot enter /no/such" in done.stderr
