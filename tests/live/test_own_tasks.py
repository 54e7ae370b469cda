"""Commands and TensorBoards on a cluster: the `det` verbs, logs, kill, and what a browser gets."""

import contextlib
import re
import sys
import uuid

import pytest
import requests

from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.chromium import CHROMIUM
from tests.fixtures.local_cluster import wait_for

pytestmark = pytest.mark.timeout(900)


def state(cluster, noun, id):
    return cluster.get(f"{noun}s/{id}")[noun]["state"]


def test_commands_run_with_their_files_and_variables(cluster, tmp_path):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "hello.py").write_text(
        "import os; print('hello', os.environ['WHO'], os.environ['DET_TASK_TYPE'])"
    )
    variables = "environment.environment_variables=[WHO=world]"
    done = cluster.det("cmd", "run", "--config", variables, "-c", folder, "python3", "hello.py")
    assert "hello world COMMAND" in done.stdout
    newest = max(cluster.get("commands")["commands"], key=lambda command: command["startTime"])
    wait_for(lambda: state(cluster, "command", newest["id"]) == "STATE_TERMINATED", 60, "the end")
    assert cluster.get(f"commands/{newest['id']}")["command"]["exitStatus"] == "exit code 0"


def test_a_command_acts_for_its_owner_in_the_folder_that_it_names(cluster, tmp_path):
    """`det` in a task logs in by the task's own token."""
    command = f"pwd; {sys.executable} -m determined.cli user whoami"
    done = cluster.det("cmd", "run", "--config", f"work_dir={tmp_path}", command)
    assert "You are logged in as user 'determined'" in done.stdout
    assert f"|| {tmp_path}\n" in done.stdout


def test_a_command_is_killed_and_its_slot_is_free_again(cluster):
    id = cluster.det("cmd", "run", "-d", "sleep 600").stdout.strip()
    wait_for(lambda: state(cluster, "command", id) == "STATE_RUNNING", 60, "the start")
    assert id in cluster.det("cmd", "list").stdout
    assert "RUNNING" in cluster.det("cmd", "list").stdout
    cluster.det("cmd", "kill", id[:8])
    wait_for(lambda: state(cluster, "command", id) == "STATE_TERMINATED", 60, "the end")
    assert "killed by determined" in cluster.get(f"commands/{id}")["command"]["exitStatus"]
    (agent,) = cluster.get("agents")["agents"]
    assert [slot["container"] for slot in agent["slots"].values()] == [None, None]
    assert len(cluster.det("slot", "list", "--csv").stdout.splitlines()) == 3


def test_a_command_that_waits_says_why(cluster):
    id = cluster.det("cmd", "run", "-d", "--config", "resources.slots=2", "sleep 600").stdout.strip()
    wait_for(lambda: state(cluster, "command", id) == "STATE_RUNNING", 60, "the start")
    other = cluster.det("cmd", "run", "-d", "echo done").stdout.strip()
    jobs = {job["entityId"]: job for job in cluster.get("job-queues")["jobs"]}
    assert jobs[other]["summary"]["state"] == "STATE_QUEUED"
    assert jobs[other]["waitsFor"]
    cluster.det("cmd", "kill", id)
    wait_for(lambda: state(cluster, "command", other) == "STATE_TERMINATED", 60, "its turn")
    assert "done" in cluster.det("cmd", "logs", other).stdout


SCRIPT = """
import determined as det
from torch.utils.tensorboard import SummaryWriter

with det.core.init(tensorboard_mode=det.core.TensorboardMode.MANUAL) as core_context:
    writer = SummaryWriter(str(core_context.train.get_tensorboard_path()))
    for step in range(5):
        writer.add_scalar("loss", 1 / (step + 1), step)
    writer.close()
    core_context.train.upload_tensorboard_files()
    for op in core_context.searcher.operations():
        core_context.train.report_validation_metrics(1, {"loss": 1.0})
        op.report_completed(1.0)
"""
CONFIG = """
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
resources: {slots_per_trial: 1}
"""


def look_in_browser(open_page, cluster, address):
    """The curves are drawn, on a page that can do nothing in the name of who looks at it."""
    page = open_page(cluster)
    page.goto(address)
    page.get_by_text("loss", exact=True).first.wait_for()
    page.locator("line-chart").first.wait_for()
    assert page.evaluate("self.origin") == "null"
    asks = "fetch(%r, {credentials: 'include'}).then(a => a.status, () => 'refused')"
    assert page.evaluate(asks % f"{cluster.address}/api/v1/me") == "refused"
    assert page.evaluate("document.cookie") == ""


@pytest.mark.full
def test_a_tensorboard_shows_the_curves_of_a_trial(cluster, tmp_path, request):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG)
    experiment = cluster.create("config.yaml", tmp_path)
    assert cluster.wait_for_end(experiment)["state"] == "STATE_COMPLETED"
    done = cluster.det(
        *("tensorboard", "start", experiment, "--no-browser"),
        *("--config", "tensorboard_args=[--window_title, Curves of mine]"),
    )
    address = done.stdout.split("running at: ")[1].split()[0]
    headers = {"Authorization": f"Bearer {cluster._token}"}
    assert requests.get(address, timeout=60).status_code == 401

    def tags():
        answer = requests.get(f"{address}data/plugin/scalars/tags", headers=headers, timeout=60)
        return answer.json() if answer.ok else {}

    wait_for(lambda: any("loss" in run_tags for run_tags in tags().values()), 90, "the curve")
    environment = requests.get(f"{address}data/environment", headers=headers, timeout=60).json()
    assert environment["window_title"] == "Curves of mine"
    assert "text/html" in requests.get(address, headers=headers, timeout=60).headers["content-type"]
    (board,) = (each for each in cluster.get("tensorboards")["tensorboards"] if each["id"] in address)
    where = re.search(
        rf"task {board['id']} answers on (\S+)", cluster.det("task", "logs", board["id"]).stdout
    )[1]
    own = f"http://{where}/proxy/{board['id']}/data/environment"
    assert requests.get(own, headers=headers, timeout=60).status_code == 401
    if CHROMIUM is not None:
        look_in_browser(request.getfixturevalue("signed_in"), cluster, address)
    cluster.det("tensorboard", "kill", board["id"])
    wait_for(lambda: state(cluster, "tensorboard", board["id"]) == "STATE_TERMINATED", 60, "the end")

    def stored():
        # Not in the whole home: folders of runs vanish there while one walks through it.
        storage = cluster.home.path / "checkpoints"
        return list(storage.rglob(f"tensorboard/experiment/{experiment}/**/*tfevents*"))

    assert stored()
    cluster.det("e", "delete", experiment, "--yes")
    listed = lambda: {entry["id"] for entry in cluster.get("experiments")["experiments"]}  # noqa: E731
    wait_for(lambda: experiment not in listed(), 60, "the deletion")
    assert not stored()


@pytest.mark.full
def test_a_tensorboard_that_nobody_looks_at_ends(cluster, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    (tmp_path / "train.py").write_text("")
    (tmp_path / "config.yaml").write_text(CONFIG)
    experiment = cluster.create("config.yaml", tmp_path)
    options = ("--detach", "--config", "idle_timeout=8s")
    id = cluster.det("tensorboard", "start", experiment, *options).stdout.strip()
    wait_for(lambda: state(cluster, "tensorboard", id) == "STATE_TERMINATED", 90, "the end")
    assert "nobody has looked at this TensorBoard for 8 s" in cluster.det("task", "logs", id).stdout
    assert cluster.get(f"tensorboards/{id}")["tensorboard"]["exitStatus"] == "exit code 0"


def contents(paths):
    """Of the files among them; the cluster works on, and replaces some of them."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            yield path, path.read_bytes()


def test_a_secret_reaches_its_task_and_lies_nowhere_in_the_clear(cluster):
    """Neither in the log nor in databases, the programs' output or answers; the task has it."""
    secret = f"hush-{uuid.uuid4().hex}"
    variables = f"environment.environment_variables=[MY_TOKEN={secret}]"
    script = "import os; print('letters', len(os.environ['MY_TOKEN']))"
    done = cluster.det("cmd", "run", "--config", variables, sys.executable, "-c", script)
    assert f"letters {len(secret)}" in done.stdout
    newest = max(cluster.get("commands")["commands"], key=lambda command: command["startTime"])
    shown = cluster.get(f"commands/{newest['id']}")
    assert "MY_TOKEN=********" in str(shown)
    assert secret not in str(shown)
    # The worker's folder of a run that is over goes; all others hold history.
    files = dict(contents(path for path in cluster.home.path.rglob("*") if "workers" not in path.parts))
    assert any("broker" in path.parts for path in files)
    assert [path for path, content in files.items() if secret.encode() in content] == []
