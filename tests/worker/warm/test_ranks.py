"""Ranks of torch's launcher are forked as their launcher was, and have the result of a cold start."""

import json
import re
from collections import Counter

import pytest

from tests.fixtures.ports import reserved_port
from tests.worker.warm.test_conformance import comparable
from worker.warm.inside.ranks import Refusal, parse_request
from worker.warm.warm_start import rank_variables

LAUNCHER = ["python3", "-m", "determined.launch.torch_distributed", "python3", "train.py"]
RANK = """
import os, sys
print("loaded" if "torch" in sys.modules else "not loaded")
import inspect, signal, threading, traceback
import torch, torch.distributed as dist
traceback.print_stack()
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
dist.destroy_process_group()
print(value.item(), torch.get_num_threads(), sys.argv, sys.orig_argv, os.getcwd(), __name__, __file__)
print(sorted((k, v) for k, v in os.environ.items() if k not in DIFFER), sys.path)
print([f.function for f in inspect.stack()], signal.pthread_sigmask(0, ()))
print([(n, signal.getsignal(n)) for n in sorted(signal.valid_signals())])
print([os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (0, 1, 2)],)
print(sorted(n for n in sys.modules if n.split(".")[0] == "worker"), threading.active_count())
print(open("/proc/self/cmdline").read().split(chr(0)), sys.stdin.read())
""".replace("DIFFER", "('TORCHELASTIC_RUN_ID', 'TORCHELASTIC_ERROR_FILE', 'MASTER_PORT', 'C10D_PORT')")
ENDS = """
import os, signal, subprocess, sys
def end(how):
    if how == "fails": 1 / 0
    if how == "killed": os.kill(os.getpid(), signal.SIGKILL)
    if how == "leaves": subprocess.Popen(["sleep", "1000"], stdout=-3, stderr=-3)
if os.environ["RANK"] == "1":
    end(sys.argv[1])
"""
OTHERS = re.compile(r"[WE]\d{4} |\s*$")
"""What torch logs of an end, as often as chance has it."""
MODULES = ("torch", "torch.distributed", "determined")


@pytest.fixture
def ranks(both):
    """Runs a script as two ranks; returns what was printed, less what differs in any two runs."""
    files = {
        "cluster": {
            "master_url": "http://127.0.0.1:1", "cluster_id": "c", "agent_id": "a", "slot_ids": [0, 1],
            "task_id": "1.t1", "allocation_id": "1.t1.1", "session_token": "", "task_type": "TRIAL",
        },
        "trial": {
            "trial_id": 1, "experiment_id": 1, "trial_seed": 1, "hparams": {}, "config": {},
            "steps_completed": 0, "trial_run_id": 1, "debug": False,
        },
        "rendezvous": {
            "container_addrs": ["127.0.0.1"], "container_rank": 0, "container_slot_counts": [2]
        },
        "resources": {"gpu_uuids": []},
    }  # fmt: skip
    for name, content in files.items():
        (both.workdir.parent / f"{name}.json").write_text(json.dumps(content))

    def run(start, text, argument=""):
        both.write(text)
        env = {"DET_RESOURCES_ID": "r", "C10D_PORT": str(reserved_port())}
        argv = [*LAUNCHER, argument]
        streams, ended = comparable(start(argv, **env | rank_variables(argv, env, 2)))
        for lines in streams.values():
            lines[:] = sorted(line for line in lines if not OTHERS.match(line))
        return streams, ended

    return run


def cold_and_warm(both, ranks, text, argument=""):
    return ranks(both.cold, text, argument), ranks(
        lambda *a, **more: both.warm(*a, MODULES, **more), text, argument
    )


@pytest.mark.full
@pytest.mark.live
def test_ranks_are_as_after_a_cold_start(both, ranks):
    cold, warm = cold_and_warm(both, ranks, RANK)
    assert [cold[0]["stdout"].count(word) for word in ("loaded", "not loaded")] == [0, 2], cold
    assert [warm[0]["stdout"].count(word) for word in ("loaded", "not loaded")] == [2, 0], warm
    for streams, _ in (cold, warm):
        streams["stdout"] = [line for line in streams["stdout"] if not line.endswith("loaded")]
    assert warm == cold
    assert cold[1][0] == 0


# The others show once more that a launcher does not notice.
@pytest.mark.parametrize(
    ("how", "code"),
    [
        pytest.param("killed", 1, marks=pytest.mark.live),
        pytest.param("fails", 1, marks=pytest.mark.full),
        pytest.param("leaves", 0, marks=pytest.mark.full),
    ],
)
def test_ranks_end_as_after_a_cold_start(both, ranks, how, code):
    cold, warm = cold_and_warm(both, ranks, ENDS, how)
    for stream in cold[0]:
        lines, warm_lines = Counter(cold[0][stream]), Counter(warm[0][stream])
        assert (lines - warm_lines, warm_lines - lines) == (Counter(), Counter()), stream
    assert warm == cold
    assert cold[1][0] == code


GIVEN = {"PATH": "/bin", "DET_TRIAL_ID": "1"}


def parsed_request(tmp_path, argv, **env):
    request = {"argv": argv, "cwd": str(tmp_path), "env": GIVEN | {"RANK": "1", "DET_CHIEF_IP": "h"} | env}
    return parse_request(request, "python3", GIVEN, {"torch", "torch.nn", "pack.main"})


@pytest.fixture
def code(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "torch.py").touch()
    (tmp_path / "deep" / "train.py").touch()
    return tmp_path


def test_what_a_rank_may_be(code):
    assert parsed_request(code, ["python3", "train.py", "-m"])["arguments"] == ["-m"]
    assert parsed_request(code, ["python3", "-m", "other", "x"]) == {
        "words": ["python3", "-m", "other", "x"], "main": "other", "is_module": True, "arguments": ["x"]
    }  # fmt: skip


@pytest.mark.parametrize(
    "argv",
    [
        ["python", "train.py"],
        ["python3", "-u", "train.py"],
        ["python3"],
        ["python3", "-m"],
        ["python3", "-m", "torch"],
        ["python3", "-m", "pack.main"],
        ["python3", "none.py"],
        ["python3", "deep/train.py"],
        ["python3", "deep/../train.py"],
        ["bash", "train.py"],
    ],
)
def test_what_is_started_cold(code, argv):
    with pytest.raises(Refusal):
        parsed_request(code, argv)


@pytest.mark.parametrize("variables", [{"OMP_NUM_THREADS": "2"}, {"PATH": "/other"}])
def test_a_rank_with_another_environment_is_started_cold(code, variables):
    with pytest.raises(Refusal):
        parsed_request(code, ["python3", "train.py"], **variables)


@pytest.mark.parametrize(
    ("argv", "slots", "env", "expected"),
    [
        (LAUNCHER, 2, {}, {"OMP_NUM_THREADS": "1"}),
        (["sh", "-c", " ".join(LAUNCHER)], 4, {}, {"OMP_NUM_THREADS": "1"}),
        (LAUNCHER, 1, {}, {}),
        (LAUNCHER, 2, {"OMP_NUM_THREADS": "4"}, {}),
        (["python3", "train.py"], 2, {}, {}),
        ([*LAUNCHER[:3], "--nproc_per_node", "1", "--", "python3", "train.py"], 2, {}, {}),
    ],
)  # fmt: skip
def test_ranks_have_the_variables_of_torchs_launcher_before_it_runs(argv, slots, env, expected):
    assert rank_variables(argv, env, slots) == expected
