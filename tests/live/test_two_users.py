"""Two users' scripts on one host, against one another and against the platform."""

import base64
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
import requests

from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.other_users import ANN, BOB, NOBODY, interpreter, needs_root

pytestmark = [needs_root, pytest.mark.timeout(600)]

TRAIN = """
import os, pathlib, time
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        with core.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
            (path / "weights").write_text("ann's")
        core.train.report_training_metrics(1, {"x": 1.0})
        core.train.report_validation_metrics(1, {"x": float(os.getuid())})
        print("ready", os.getuid(), flush=True)
        while not pathlib.Path(os.environ["GATE"]).exists():
            time.sleep(0.05)
        op.report_completed(1.0)
"""
CONFIG = """
name: {name}
entrypoint: python3 train.py
searcher: {{name: single, metric: x, max_length: 1}}
checkpoint_storage: {{type: shared_fs, host_path: {storage}, save_trial_latest: 0, save_trial_best: 0,
                      save_experiment_best: 0}}
environment: {{environment_variables: [GATE={gate}, MINE=word]}}
max_restarts: 0
"""
HOSTILE = '''
import ctypes, json, os, socket, struct

me, done = os.getuid(), []

def tries(what, how):
    try:
        got = how()
    except (OSError, ValueError):
        return
    # Threads of the kernel have empty files, and those are everybody's.
    if got != b"":
        done.append(what)

def below(folder):
    """All that can be seen there, the folder itself among it."""
    yield folder
    for inner, folders, files in os.walk(folder):
        yield from (os.path.join(inner, name) for name in (*folders, *files))

def look(path):
    os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)

for folder in os.environ["PRIVATE"].split(":"):
    for path in below(folder):
        tries(f"read {path}", lambda: look(path))
        tries(f"write {path}", lambda: open(path + "/x" if os.path.isdir(path) else path, "ab").close())
# Where checkpoints are begun, nobody sees their ids; one that is registered, everybody knows.
tries("list the storage", lambda: os.listdir(os.environ["STORAGE"]))
known = list(below(os.environ["CHECKPOINT"]))
for path in known:
    if os.lstat(path).st_uid not in (0, me):
        tries(f"change {path}", lambda: open(path + "/x" if os.path.isdir(path) else path, "ab").close())
        tries(f"move {path}", lambda: os.rename(path, path + "-gone"))
        tries(f"chmod {path}", lambda: os.chmod(path, 0o777))
libc = ctypes.CDLL(None, use_errno=True)
others = 0

def is_mine_or_gone(pid):
    try:
        return os.stat(f"/proc/{pid}").st_uid == me
    except OSError:
        return True

for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if is_mine_or_gone(pid):
        continue
    others, before = others + 1, len(done)
    for name in ("environ", "mem", "maps", "auxv", "stack", "syscall"):
        tries(f"read /proc/{pid}/{name}", lambda: open(f"/proc/{pid}/{name}", "rb").read(1))
    for name in ("cwd", "root", "exe"):
        tries(f"follow /proc/{pid}/{name}", lambda: os.readlink(f"/proc/{pid}/{name}"))
    tries(f"list /proc/{pid}/fd", lambda: os.listdir(f"/proc/{pid}/fd"))
    tries(f"signal {pid}", lambda: os.kill(pid, 0))
    if libc.ptrace(16, pid, 0, 0) == 0:
        done.append(f"attach to {pid}")
    # What is started for this user belongs to root at first.
    if is_mine_or_gone(pid):
        del done[before:]
for id in (0, int(os.environ["OTHER"])):
    tries(f"become {id}", lambda: os.setuid(id))
    tries(f"join {id}", lambda: os.setgid(id))
tries("take groups", lambda: os.setgroups([0]))

def answers_as(path):
    """Whose the process is that listens there."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(5)
        probe.connect("\\0" + path[1:] if path.startswith("@") else path)
        return struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]

mine = socket.socket(socket.AF_UNIX)
mine.bind(f"\\0mine-{os.getpid()}")
mine.listen()
own = False
for line in open("/proc/net/unix", errors="replace").readlines()[1:]:
    fields = line.rstrip("\\n").split(" ", 7)
    if len(fields) < 8 or fields[3] != "00010000":
        continue
    path = fields[7].split(" ", 1)[-1]
    try:
        whose = answers_as(path)
    except OSError:
        continue
    own = own or path == f"@mine-{os.getpid()}"
    # Root has sockets for everybody; of the platform it has none.
    if whose not in (0, me) or path.startswith(os.environ["HOME_OF_PLATFORM"]):
        done.append(f"talk to {path}")
if not own:
    done.append("sockets are not found here")
named = [name for name in os.environ if name.startswith("STEADFAST_")]
secret = [name for name, value in os.environ.items() if "platform-secret" in value]
report = {"me": me, "others": others, "known": len(known), "done": done, "named": named, "secret": secret}
print("FOUND " + json.dumps(report))
'''


class Person:
    """Somebody who uses the REST API."""

    def __init__(self, cluster, name):
        self._base = f"{cluster.address}/api/v1"
        payload = {"username": name, "password": "", "isHashed": True}
        token = requests.post(f"{self._base}/auth/login", json=payload, timeout=60).json()["token"]
        self._headers = {"Authorization": f"Bearer {token}"}

    def post(self, path, body):
        answer = requests.post(f"{self._base}/{path}", json=body, headers=self._headers, timeout=60)
        assert answer.ok, answer.text
        return answer.json()

    def get(self, path):
        answer = requests.get(f"{self._base}/{path}", headers=self._headers, timeout=60)
        assert answer.ok, answer.text
        return answer.json()

    def log(self, task):
        answer = requests.get(f"{self._base}/tasks/{task}/logs", headers=self._headers, timeout=60)
        return [json.loads(line)["result"]["log"].rstrip() for line in answer.text.splitlines() if line]

    def command(self, script, **variables):
        """Run a command to its end; returns its output."""
        assignments = [f"{name}={value}" for name, value in variables.items()]
        environment = {"environment_variables": assignments}
        config = {
            "entrypoint": ["python3", "-c", script],
            "environment": environment,
            "resources": {"slots": 0},
        }
        id = self.post("commands", {"config": config})["command"]["id"]
        wait_for(
            lambda: self.get(f"commands/{id}")["command"]["state"] == "STATE_TERMINATED", 60, "the command"
        )
        return self.log(id)


@pytest.fixture(scope="module")
def shop():
    """Folders that every user can enter: pytest's own are closed to others."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    (made / "storage").mkdir()
    (made / "storage").chmod(0o1733)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def place(shop, tmp_path_factory):
    python = interpreter(shop)
    settings = {
        "STEADFAST_WORKER_RUN_AS": f"{NOBODY}:{NOBODY}",
        "STEADFAST_WORKER_TASKS": str(shop / "tasks"),
        "MINIO_SECRET_KEY": "platform-secret",
    }
    # The home itself may be entered: it is not its parents that keep anybody out.
    home = shop / "home"
    home.mkdir()
    cluster = LocalCluster(home, slots=4, python=python, storage=str(shop / "storage"), settings=settings)
    cluster.up()
    yield cluster
    cluster.down()


@pytest.fixture(scope="module")
def people(place):
    admin = Person(place, "admin")
    for name, id in (("ann", ANN), ("bob", BOB)):
        group = {"agentUid": id, "agentGid": id, "agentUser": name, "agentGroup": name}
        admin.post("users", {"user": {"username": name, "active": True, "agentUserGroup": group}})
    return {name: Person(place, name) for name in ("ann", "bob", "determined")}


def submit(person, shop, name):
    """Start an experiment; returns its id, its trial's task, and the file that lets it go on."""
    gate = shop / f"gate-{name}"
    config = CONFIG.format(name=name, storage=shop / "storage", gate=gate)
    content = base64.b64encode(TRAIN.encode()).decode()
    file = {"path": "train.py", "type": 48, "content": content, "mode": 0o644, "mtime": 0, "uid": 0, "gid": 0}
    body = {"config": config, "modelDefinition": [file], "activate": True}
    id = person.post("experiments", body)["experiment"]["id"]
    wait_for(lambda: person.get(f"experiments/{id}/trials")["trials"], 60, "the trial")
    task = person.get(f"experiments/{id}/trials")["trials"][0]["taskId"]
    return id, task, gate


def test_a_hostile_script_gets_at_nothing_of_others(place, people, shop):
    id, task, gate = submit(people["ann"], shop, "ann")
    ready = f"ready {ANN}"
    wait_for(lambda: ready in people["ann"].log(task), 90, f"'{ready}' in {people['ann'].log(task)}")
    home = place.home.path
    private = [home / "secrets", home / "databases", home / "broker", home / "blobs", home / "logs"]
    private += [home / "workers" / name for name in place.workers()]
    private += [folder for folder in shop.glob("tasks/*/*") if folder.stat().st_uid == ANN]
    assert (home / "secrets" / "authority.json").exists()
    assert len(private) == 7, private
    variables = {"PRIVATE": ":".join(map(str, private)), "STORAGE": str(shop / "storage"), "OTHER": str(ANN)}
    (checkpoint,) = people["ann"].get(f"experiments/{id}/checkpoints")["checkpoints"]
    variables |= {"HOME_OF_PLATFORM": str(home), "CHECKPOINT": str(shop / "storage" / checkpoint["uuid"])}
    for name, uid in (("bob", BOB), ("determined", NOBODY)):
        lines = people[name].command(HOSTILE, **variables)
        (report,) = [json.loads(line[6:]) for line in lines if line.startswith("FOUND ")]
        assert report["me"] == uid
        assert report["others"] > 5
        assert report["known"] > 2
        assert report["done"] == [], "\n".join(report["done"])
        assert (report["named"], report["secret"]) == ([], [])
    gate.touch()
    place.wait_for_end(id)
    assert people["ann"].get(f"experiments/{id}")["experiment"]["state"] == "STATE_COMPLETED"


def test_a_trial_of_another_user_works_and_leaves_nothing(place, people, shop):
    """Metrics, output, checkpoint, and its deletion by a task of the same user."""
    id, task, gate = submit(people["bob"], shop, "bob")
    gate.touch()
    place.wait_for_end(id)
    assert f"ready {BOB}" in people["bob"].log(task)
    trial = people["bob"].get(f"experiments/{id}/trials")["trials"][0]
    assert trial["latestValidation"]["metrics"]["avgMetrics"] == {"x": float(BOB)}

    # Its policy keeps none: what bob's trial wrote, a task of bob's deletes.
    def deleted():
        checkpoints = people["bob"].get(f"experiments/{id}/checkpoints")["checkpoints"]
        return [checkpoint["state"] for checkpoint in checkpoints] == ["STATE_DELETED"]

    wait_for(deleted, 60, "the deletion")
    left = [path for path in (shop / "storage").rglob("*") if path.lstat().st_uid == BOB and path.is_file()]
    # Those for TensorBoard stay with the experiment. The folder that holds them was the first user's.
    assert [path.name.split(".")[0] for path in left if "tensorboard" in path.parts] == ["events"]
    assert [path for path in left if "tensorboard" not in path.parts] == []
    wait_for(lambda: not list(shop.glob("tasks/*/*")), 60, "folders of tasks to go")


def test_nobody_reads_a_token_in_the_log_of_another(place, people):
    """Everybody may read logs; whoever had the token could act as its owner."""
    script = "import os; print(dict(os.environ)); print('ends', os.environ['DET_SESSION_TOKEN'][-4:])"
    lines = people["bob"].command(script)
    assert any("'DET_SESSION_TOKEN': '********'" in line for line in lines), lines
    assert not any("task.ey" in line for line in lines), lines
    assert any(line.startswith("ends ") for line in lines), lines


def test_an_impossible_account_is_reported(place, people):
    admin = Person(place, "admin")
    group = {"agentUid": 0, "agentGid": 0, "agentUser": "root", "agentGroup": "root"}
    admin.post("users", {"user": {"username": "eve", "active": True, "agentUserGroup": group}})
    lines = Person(place, "eve").command("import os; print(os.getuid())")
    assert any("tasks do not run as 'root' (0:0)" in line for line in lines), lines
    assert "0" not in lines


def test_a_folder_that_only_root_can_enter_is_reported(place, people, tmp_path):
    """pytest's folders are root's alone."""
    config = {
        "entrypoint": "true",
        "checkpoint_storage": {"type": "shared_fs", "host_path": str(tmp_path / "closed")},
        "searcher": {"name": "single", "metric": "x", "max_length": 1},
        "max_restarts": 0,
    }
    ann = people["ann"]
    id = ann.post("experiments", {"config": json.dumps(config), "activate": True})["experiment"]["id"]
    place.wait_for_end(id)
    task = ann.get(f"experiments/{id}/trials")["trials"][0]["taskId"]
    log_text = "\n".join(ann.log(task))
    assert f"(as user 'ann' ({ANN}:{ANN}))" in log_text
    assert "enter every folder above it" in log_text
    assert os.geteuid() == 0
