"""A whole run: code unpacked, environment made, script started, output read."""

import io
import os
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from det_contracts import expconf
from det_contracts.events.worker import Slot
from worker import process, startup_hook
from worker.environment import (
    Cluster,
    Placement,
    Task,
    Trial,
    info_files,
    interpreter_dirs,
    variables,
    write_info,
)
from worker.ports import Ports
from worker.workdir import unpack

pytestmark = pytest.mark.live

PLAIN_PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
"""An interpreter for training that has nothing of the platform installed."""


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def run_files(runs):
    """Run an experiment of these files, as a worker would; returns its lines and its exit."""

    def run(files, command="python3 train.py", **config):
        root = runs.folder / "alloc"
        unpack(archive(runs.folder / "context.tar.gz", files), root / "workdir", root / "model")
        trial = Trial(trial_id=1, experiment_id=2, run=1, seed=3, hparams={"lr": 0.5}, config=config)
        task = Task(
            task_id="2.r",
            allocation_id="2.r.1",
            resources_id="2.r.1-w",
            task_type="TRIAL",
            session_token="st",
            user="ann",
            user_token="ut",
            trial=trial,
        )
        cluster = Cluster(master_url="http://127.0.0.1:8080", cluster_id="c", agent_id="w")
        place = Placement(
            workdir=root / "workdir",
            info_dir=root / "info",
            slots=(Slot(0, "cpu", "cpu-0", "CPU"),),
            visible_devices="",
            ports=Ports(1, 2, 3, 4),
            python_path=interpreter_dirs(PLAIN_PYTHON, root / "bin"),
        )
        write_info(place.info_dir, info_files(task, cluster, place), {})
        argv = expconf.entrypoint_command(command, slots=1)
        if startup_hook.HOOK in files:
            argv = startup_hook.add_hook(argv)
        process.prepare(runs.dir(), argv, place.workdir, variables(task, cluster, place, os.environ))
        process.start(runs.dir())
        ended = runs.ended(runs.dir())
        return [text for _, text in runs.lines(runs.dir())], ended

    return run


def test_a_script_gets_its_own_modules_whatever_they_are_called(run_files):
    files = {
        "train.py": "import worker, services.kit, tests.helpers, determined_helpers\n"
        "for module in (worker, services.kit, tests.helpers, determined_helpers):\n"
        "    print(module.WHOSE, module.__file__)\n",
        "worker.py": "WHOSE = 'user'\n",
        "services/kit.py": "WHOSE = 'user'\n",
        "tests/helpers.py": "WHOSE = 'user'\n",
        "determined_helpers.py": "WHOSE = 'user'\n",
    }
    lines, ended = run_files(files)
    assert ended.code == 0, lines
    assert [line.split()[0] for line in lines] == ["user"] * 4
    assert all("/alloc/workdir/" in line for line in lines)


def test_python_and_python3_are_the_training_interpreter(run_files):
    script = "import sys; print(sys.version_info[:2], sys.prefix)"
    lines, _ = run_files({"train.py": script}, "python train.py && python3 train.py")
    assert lines == [f"{sys.version_info[:2]} {sys.base_prefix}"] * 2


def test_the_script_finds_out_who_it_is(run_files):
    script = """
import json, os, pathlib
info = pathlib.Path(os.environ["DET_INFO_DIR"])
print(json.loads((info / "trial.json").read_text())["hparams"], os.environ["DET_TRIAL_ID"], os.getcwd())
devices = repr(os.environ["CUDA_VISIBLE_DEVICES"])
print(json.loads((info / "cluster.json").read_text())["allocation_id"], devices)
"""
    lines, _ = run_files({"train.py": script})
    assert lines[0].startswith("{'lr': 0.5} 1 ")
    assert lines[0].endswith("/alloc/workdir")
    assert lines[1] == "2.r.1 ''"


def test_a_hook_sets_the_stage(run_files):
    files = {
        "startup-hook.sh": "export FROM_HOOK=yes\n",
        "train.py": "import os; print(os.environ['FROM_HOOK'], os.environ['MINE'])",
    }
    lines, ended = run_files(files, environment={"environment_variables": ["MINE=1"]})
    assert ended.code == 0
    assert "yes 1" in lines


def test_a_hook_that_fails_ends_the_task(run_files):
    lines, ended = run_files({"startup-hook.sh": "false\n", "train.py": "print('unreached')"})
    assert ended.code == 1
    assert "unreached" not in lines


def test_output_is_there_while_the_script_runs(run_files, runs):
    script = "import time, pathlib\nprint('now')\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)\n"

    def answer():
        runs.wait_for_line(runs.dir(), "now")
        (runs.folder / "alloc" / "workdir" / "go").touch()

    helper = threading.Thread(target=answer)
    runs.dir().joinpath("spool").mkdir(parents=True)
    helper.start()
    lines, ended = run_files({"train.py": script})
    helper.join()
    assert (lines, ended.code) == (["now"], 0)


def test_a_configuration_too_large_for_a_process_starts_all_the_same(run_files):
    script = """
import json, os
with open(os.environ["DET_INFO_DIR"] + "/trial.json") as file:
    print(len(json.load(file)["config"]["x"]))
"""
    lines, ended = run_files({"train.py": script}, x="y" * 300_000)
    assert (lines, ended.code) == (["300000"], 0)
