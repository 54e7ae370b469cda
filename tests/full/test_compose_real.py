"""The compose file in a real Docker: built from the sources, scaled, killed at random, down and up."""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import requests

from services.kit.broker import held_port, port_of
from tests.fixtures.browser import CHROMIUM, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.compose import REQUIRED, SERVICES
from tests.fixtures.docker_daemon import DockerDaemon, unavailable
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.stand_ins import NODE, PYTHON, compose_images, provide

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.timeout(3000),
    pytest.mark.skipif(bool(why := unavailable(compose=True)), reason=why),
]
WORKERS = 3
MOST_MB = 300
BASE_MB = 125
"""What python:3.11-slim takes on a disk; its stand-in is larger."""
OVERRIDE = """
services:
  setup:
    build:
      network: host
"""
SCRIPT = """
import determined as det
import time
with det.core.init() as core:
    begun = det.get_cluster_info().latest_checkpoint
    print("begins with", begun)
    for op in core.searcher.operations():
        for step in range(1, op.length + 1):
            core.train.report_training_metrics(step, {"loss": 1 / step})
            time.sleep(PAUSE)
        core.train.report_validation_metrics(op.length, {"loss": 1 / op.length})
        with core.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "weights").write_bytes(b"w" * 1000)
        op.report_completed(1 / op.length)
"""
CONFIG = """
name: NAME
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: adaptive_asha, metric: loss, max_length: 16, max_trials: 8, max_concurrent_trials: 3}
max_restarts: 5
resources: {resource_pool: POOL}
"""
POOLS = """
resource_pools:
  - pool_name: default
  - pool_name: on-demand
    provider: {type: process, max_instances: 2, max_idle_agent_period: 5s}
"""

GUIDE = (ROOT / "docs" / "guides" / "compose.md").read_text()
BLOCKS = re.findall(r"```\w+(?: title=\S+)?\n(.*?)```", GUIDE, re.DOTALL)


def block(part: str) -> str:
    """The block of the guide that contains this."""
    (text,) = [text for text in BLOCKS if part in text]
    return text


class Compose(LocalCluster):
    """The stack, and who uses it."""

    def __init__(self, daemon: DockerDaemon, sources: Path, folder: Path) -> None:
        self.daemon, self.sources = daemon, sources
        self._door = held_port()
        self.address = f"http://127.0.0.1:{port_of(self._door)}"
        self.configuration = folder / "configuration"
        self.password = REQUIRED["INITIAL_PASSWORD"]
        self._session, self._token = requests.Session(), ""
        override = folder / "override.yaml"
        override.write_text(OVERRIDE)
        files = [sources / "docker-compose.yaml", override]
        daemon.environment |= REQUIRED | {"GATEWAY_PORTS": str(port_of(self._door))}
        daemon.environment["COMPOSE_FILE"] = ":".join(map(str, files))

    def compose(self, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
        return self.daemon.docker("compose", *words, cwd=self.sources, **more)

    def follow(self, part: str) -> None:
        """Do what the block of the guide says that contains this."""
        command = ["bash", "-euc", block(part)]
        more = {"cwd": self.sources, "env": self.daemon.environment}
        done = subprocess.run(command, **more, capture_output=True, text=True, check=False)
        assert not done.returncode, done.stdout + done.stderr

    def up(self):
        self._door.close()
        self.compose("up", "--build", "--detach", "--scale", f"worker={WORKERS}")
        wait_for(self._answers, 180, "the gateway")
        wait_for(lambda: len(self.agents()) == WORKERS, 120, "all workers")
        return self

    def _answers(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self.address}/api/v1/master", timeout=5).ok
        return False

    def agents(self) -> set[str]:
        return {agent["id"] for agent in self.get("agents")["agents"]}

    def running(self) -> list[str]:
        return self.daemon.containers("label=com.docker.compose.project=steadfast")

    def kill9(self, name: str) -> None:
        """As the kernel does it: a container that somebody stops by its engine is not started again."""
        pid = self.daemon.inspect(name)["State"]["Pid"]
        if pid:
            os.kill(pid, signal.SIGKILL)

    def record_of(self, id: int) -> dict[str, object]:
        """All that the cluster knows of an experiment that has ended."""
        trials = self.trials(id)
        return {
            "experiment": self.experiment(id),
            "trials": trials,
            "checkpoints": self.get(f"experiments/{id}/checkpoints", sortBy="SORT_BY_UUID")["checkpoints"],
            "logs": {trial["id"]: sorted(self.logs(trial["id"])) for trial in trials},
        }


@pytest.fixture(scope="module")
def folder():
    """Short, as it holds sockets, and gone at the end with all images and volumes."""
    made = Path(tempfile.mkdtemp(prefix="compose-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def stack(folder):
    sources = folder / "sources"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).exists():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, sources / name)
    daemon = DockerDaemon(folder)
    daemon.start()
    made = None
    try:
        others = compose_images(sources / "docker-compose.yaml")
        wanted = [others[name] for name in ("nats", "postgres", "minio/minio")]
        provide(daemon, folder / "stand-ins", PYTHON, NODE, *wanted)
        made = Compose(daemon, sources, folder)
        yield made.up()
    except BaseException:
        if made is not None:
            print(made.compose("logs", "--tail", "40", "--no-color", check=False).stdout)
        raise
    finally:
        if made is not None:
            made.compose("down", "--volumes", check=False)
        daemon.stop()


def submit(stack: Compose, folder: Path, name: str, pause: float, pool: str = "default") -> int:
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT.replace("PAUSE", str(pause)))
    (folder / "config.yaml").write_text(CONFIG.replace("NAME", name).replace("POOL", pool))
    return stack.create("config.yaml", folder)


def expect_whole(stack: Compose, id: int) -> None:
    ended = stack.wait_for_end(id, 600)
    assert ended["state"] == "STATE_COMPLETED", (ended["stateReason"], stack.trials(id))
    trials = stack.trials(id)
    assert len(trials) == 8
    # Whatever was killed: each length that was asked for is reported once, with what the script said.
    for trial in trials:
        best = trial["bestValidation"]
        assert best["metrics"]["avgMetrics"] == {"loss": 1 / best["totalBatches"]}


def wait_for_retention(stack: Compose, *ids: int) -> None:
    """Wait until each trial has one checkpoint, its best and latest: tasks remove the others after the end.

    That no task runs says too little: none may have been asked for yet, or its last word not be read.
    """

    def is_over() -> bool:
        counts = {trial["checkpointCount"] for id in ids for trial in stack.trials(id)}
        return counts == {1} and not stack.get("tasks")["allocationIdToSummary"]

    wait_for(is_over, 120, "the last task to end")


def differences(before, after, where=""):
    """The places at which two answers differ, and how."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return [d for key in before for d in differences(before[key], after[key], f"{where}/{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [d for n, pair in enumerate(pairs) for d in differences(*pair, f"{where}/{n}")]
    return [] if before == after else [f"{where}: {before!r} -> {after!r}"]


def test_one_image_is_built_for_all(stack):
    images = stack.daemon.docker("images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
    assert images.count("steadfast:dev") == 1
    assert not stack.daemon.docker("images", "--quiet", "--filter", "dangling=true").stdout.split()
    whole, base = (stack.daemon.inspect(name)["Size"] / 1e6 for name in ("steadfast:dev", PYTHON))
    print(f"the image has {whole:.0f} MB, {whole - base:.0f} of them beside its base")
    assert whole - base + BASE_MB < MOST_MB
    for name in (*SERVICES, "worker"):
        (container, *_) = stack.daemon.containers(f"label=com.docker.compose.service={name}")
        assert stack.daemon.inspect(container)["Config"]["User"] == (
            "root" if name == "worker" else "steadfast"
        )


def test_each_worker_has_an_id_and_folders_of_its_own(stack):
    workers = stack.daemon.containers("label=com.docker.compose.service=worker")
    containers = [stack.daemon.inspect(name) for name in workers]
    assert stack.agents() == {container["Config"]["Hostname"] for container in containers}
    homes = {
        m["Source"]
        for container in containers
        for m in container["Mounts"]
        if m["Destination"].endswith("worker")
    }
    assert len(homes) >= WORKERS


def test_the_web_ui_is_in_the_image(stack):
    page = requests.get(f"{stack.address}/det/", timeout=60)
    scripts = re.findall(r'src="(/det/assets/[^"]+\.js)"', page.text)
    assert scripts, page.text[:500]
    assert requests.get(stack.address + scripts[0], timeout=60).ok


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make test installs it")
def test_a_browser_shows_it(stack, browser):
    context = browser.new_context(base_url=stack.address)
    page = context.new_page()
    page.set_default_timeout(60 * SECONDS)
    page.goto("/det/")
    page.locator("input[name=username]").fill("determined")
    page.locator("input[name=password]").fill(stack.password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Dashboard").wait_for()
    context.close()


def test_searches_are_whole_whatever_is_killed_and_after_down_and_up(stack, tmp_path):
    calm = submit(stack, tmp_path / "calm", "calm", 0.0)
    expect_whole(stack, calm)
    chance = random.Random(260)
    stormy = submit(stack, tmp_path / "stormy", "stormy", 0.3)
    killed = []
    for _ in range(12):
        wait_for(
            lambda: len(stack.running()) >= len(SERVICES) + WORKERS + 3, 180, "all containers to be back"
        )
        victim = chance.choice(sorted(stack.running()))
        stack.kill9(victim)
        killed.append(victim)
    print("killed:", killed)
    expect_whole(stack, stormy)

    wait_for_retention(stack, calm, stormy)
    before = {id: stack.record_of(id) for id in (calm, stormy)}
    # The engine may take a network for one in use whose container was killed: it stays, and is taken again.
    stack.compose("down", check=False)
    assert stack.daemon.containers(all=True) == []
    stack.up()
    assert differences(before, {id: stack.record_of(id) for id in before}) == []
    expect_whole(stack, submit(stack, tmp_path / "again", "again", 0.0))


def test_people_reach_it_by_its_name_through_a_proxy(stack):
    forwarded = {"Host": "lab.example.org", "X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    login = {"username": "admin", "password": stack.password, "isHashed": False}

    def sign_in():
        return requests.post(f"{stack.address}/api/v1/auth/login", json=login, headers=forwarded, timeout=60)

    assert sign_in().status_code == 421
    settings = dict(line.partition("  ")[0].split("=") for line in block("ALLOWED_HOSTS=").splitlines())
    stack.daemon.environment |= {name: settings[name] for name in ("ALLOWED_HOSTS", "TRUSTED_PROXIES")}
    stack.up()
    answer = sign_in()
    assert answer.ok, answer.text
    assert "secure" in answer.headers["set-cookie"].lower()


@contextlib.contextmanager
def worker_outside(stack, address, ports, folder):
    keys, home = stack.sources / "handed", folder / "home"
    settings = {
        "STEADFAST_WORKER_ID": "gpu-3",
        "STEADFAST_NATS_URL": f"nats://{address}:{ports['NATS_PORT']}",
        "STEADFAST_NATS_CREDENTIALS": str(keys / "gpu-3.creds"),
        "STEADFAST_TRIAL_SIGNING": str(keys / "trial-signing.json"),
        "STEADFAST_SEALING_KEY": str(keys / "sealing-key"),
        "STEADFAST_WORKER_HOME": str(home),
        "STEADFAST_WORKER_GPU": "false",
        "STEADFAST_WORKER_SLOTS": "2",
        "STEADFAST_BLOBS": "s3://steadfast/blobs",
        "STEADFAST_S3_ENDPOINT_URL": stack.daemon.environment["S3_URL"],
        "STEADFAST_S3_ACCESS_KEY": "steadfast",
        "STEADFAST_S3_SECRET_KEY": "development-only",
        "STEADFAST_MASTER_URL": stack.address,
    }
    command = [sys.executable, "-P", "-m", "worker"]
    with (folder / "worker.log").open("w") as log:
        worker = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(60)
        print((folder / "worker.log").read_text()[-2000:])


def test_a_worker_outside_of_the_stack_trains(stack, tmp_path, monkeypatch):
    (network,) = stack.daemon.inspect("steadfast_default")["IPAM"]["Config"]
    with held_port() as broker, held_port() as store:
        ports = {"NATS_PORT": str(port_of(broker)), "S3_PORT": str(port_of(store))}
    address = network["Gateway"]
    override = stack.sources / "docker-compose.override.yaml"
    override.write_text(block("${NATS_PORT:-4222}"))
    files = f"{stack.daemon.environment['COMPOSE_FILE']}:{override}"
    store = f"http://{address}:{ports['S3_PORT']}"
    for name, value in (ports | {"LISTEN": address, "S3_URL": store, "COMPOSE_FILE": files}).items():
        # For this test alone: the address goes with the network.
        monkeypatch.setitem(stack.daemon.environment, name, value)
    stack.up()
    (stack.sources / "handed").mkdir()
    os.chown(stack.sources / "handed", 10001, 10001)
    stack.follow("--worker gpu-3")
    with worker_outside(stack, address, ports, tmp_path):
        wait_for(lambda: "gpu-3" in stack.agents(), 60, "the worker outside")
        stack.compose("stop", "worker")
        wait_for(lambda: stack.agents() == {"gpu-3"}, 60, "it to be alone")
        expect_whole(stack, submit(stack, tmp_path / "outside", "outside", 0.0))


def test_what_the_guide_backs_up_is_the_whole_cluster(stack, tmp_path):
    stack.up()
    id = submit(stack, tmp_path / "kept", "kept", 0.0)
    expect_whole(stack, id)
    wait_for_retention(stack, id)
    before = stack.record_of(id)
    (stack.sources / "backup").mkdir()
    stack.follow("-cf /to/$name.tar")
    stack.compose("down", "--volumes", check=False)
    stack.follow("-xf /from/$name.tar")
    stack.up()
    assert differences(before, stack.record_of(id)) == []
    expect_whole(stack, submit(stack, tmp_path / "after", "after", 0.0))


def test_a_pool_grows_and_shrinks_with_the_profile(stack, tmp_path):
    (tmp_path / "pools.yaml").write_text(POOLS)
    stack.daemon.environment |= {
        "COMPOSE_PROFILES": "grow",
        "POOLS": "/etc/steadfast/pools.yaml",
        "POOLS_FILE": str(tmp_path / "pools.yaml"),
    }
    stack.up()
    standing = stack.agents()
    id = submit(stack, tmp_path / "grown", "grown", 0.1, pool="on-demand")
    wait_for(lambda: stack.agents() - standing == {"on-demand-1", "on-demand-2"}, 180, "two more workers")
    expect_whole(stack, id)
    wait_for(lambda: stack.agents() == standing, 120, "them to be given back")
    output = " ".join(stack.det("why", "worker", "on-demand-1").stdout.split())
    assert "it had no work for 5 s (max_idle_agent_period)" in output
