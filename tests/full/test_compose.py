"""Each service of the compose file runs as it says, beside a real PostgreSQL and S3 store."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa

from services.kit import broker
from services.kit.blobs import s3_client
from tests.fixtures.compose import REQUIRED, SERVICES, WITH_DATABASE, own_volumes, read_file, volumes
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.other_users import interpreter
from tests.fixtures.s3_server import KEY, SECRET, s3_server

BIN = Path(sys.executable).parent
PLATFORM = {"STEADFAST_", "AWS_", "MINIO_", "DET_"}
SCRIPT = """
import determined as det
import os
print("on the way", os.getuid())
with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_training_metrics(op.length, {"loss": 0.5})
        core.train.report_validation_metrics(op.length, {"loss": 0.25})
        with core.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "weights").write_bytes(b"w" * 1000)
        op.report_completed(0.25)
"""
CONFIG = """
name: through-the-stack
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_length: 4, max_trials: 2}
max_restarts: 0
"""


WORKERS = ("worker-1", "worker-2")
"""As after `docker compose up --scale worker=2`."""
CONTAINERS = (*SERVICES, *WORKERS)


def service_of(container):
    return "worker" if container in WORKERS else container


class Stack(LocalCluster):
    """The compose file's services as local processes, with the same programs in place of images.

    Each worker has a host name of its own, as containers have.
    """

    def __init__(self, folder, open_folder, database_url, s3_url):
        self.folder = folder
        self.open = open_folder
        self._held = [broker.held_port() for _ in range(3 + len(CONTAINERS))]
        free = map(broker.port_of, self._held)
        self.ports = dict(zip(("nats", "monitor", "gateway"), free, strict=False))
        self.health_ports = dict(zip(CONTAINERS, free, strict=True))
        self.address = f"http://127.0.0.1:{self.ports['gateway']}"
        self.configuration = folder / "configuration"
        self._hosts = {
            r"postgresql://\S+@postgres:5432/\w+": database_url,
            "http://minio:9000": s3_url,
            r"(\bnats|0\.0\.0\.0):4222": f"127.0.0.1:{self.ports['nats']}",
            r"\bgateway:8080": f"127.0.0.1:{self.ports['gateway']}",
        }
        self.password = REQUIRED["INITIAL_PASSWORD"]
        self._services = read_file(S3_ACCESS_KEY=KEY, S3_SECRET_KEY=SECRET)
        self._processes = []
        self._session, self._token = requests.Session(), ""

    def up(self):
        monitor = ["--monitor-port", str(self.ports["monitor"])]
        environment = self._environment("setup")
        for _ in range(2):
            # A stack that is started again prepares again.
            setup = [*self._command("setup"), *monitor]
            subprocess.run(setup, env=environment, check=True, cwd=self.folder, timeout=60)
        self._start("nats", [str(BIN / "nats-server"), *self._command("nats")])
        broker.wait_until_healthy(self.ports["monitor"])
        for name in SERVICES:
            self._start(name, self._command(name))
        for name in WORKERS:
            self._start(name, [*called(name), *self._command(name)])

    def down(self):
        """Stop what was started last first, as compose does."""
        self._session.close()
        for held in self._held:
            held.close()
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs_of_processes(self):
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2500:]}" for log in logs)

    def _map(self, container, text):
        name = service_of(container)
        for pattern, there in self._hosts.items():
            text = re.sub(pattern, lambda _, there=there: there, text)
        if text in own_volumes(self._services[name]):
            return str(self.folder / "volumes" / f"of-{container}" / Path(text).name)
        # The broker's folder is its own: who prepares the stack only writes its name down.
        mounts = volumes(self._services[name]) | ({"log": "/data"} if name == "setup" else {})
        for volume, inside in sorted(mounts.items(), key=lambda pair: -len(pair[1])):
            if text == inside or text.startswith(f"{inside}/"):
                return str(self.folder / "volumes" / volume) + text[len(inside) :]
        return text

    def _command(self, name):
        self._lay_out(service_of(name))
        words = [self._map(name, str(word)) for word in self._services[service_of(name)]["command"]]
        return [sys.executable, "-P", *words[1:]] if words[0] == "python" else words

    def _lay_out(self, name):
        """Volumes mounted inside one another, as links."""
        mounts = sorted(volumes(self._services[name]).items(), key=lambda pair: len(pair[1]))
        for volume, inside in mounts:
            place = self.folder / "volumes" / volume
            place.mkdir(parents=True, exist_ok=True)
            for outer, above in mounts:
                inner = self.folder / "volumes" / outer / Path(inside).name
                if Path(inside).parent == Path(above) and not inner.exists():
                    inner.symlink_to(place)

    def _environment(self, name):
        environment = self._services[service_of(name)].get("environment", {})
        wanted = {key: self._map(name, str(value)) for key, value in environment.items()}
        if "STEADFAST_PORT" in wanted:
            wanted |= {"STEADFAST_PORT": str(self.ports["gateway"]), "STEADFAST_HOST": "127.0.0.1"}
        if "STEADFAST_HEALTH_PORT" in wanted:
            port = str(self.health_ports[name])
            wanted |= {"STEADFAST_HEALTH_PORT": port, "STEADFAST_HEALTH_HOST": "127.0.0.1"}
        if "STEADFAST_WORKER_RUN_AS" in wanted:
            wanted |= self._run_as()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(tuple(PLATFORM))}
        return inherited | wanted

    def _run_as(self):
        """Here the interpreter of these tests stands for the image's, and may be closed to others."""
        if os.geteuid() != 0:
            return {"STEADFAST_WORKER_RUN_AS": ""}
        return {
            "STEADFAST_WORKER_PYTHON": interpreter(self.open),
            "STEADFAST_WORKER_TASKS": str(self.open / "tasks"),
        }

    def _start(self, name, command):
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=self._environment(name), cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
            )
        self._processes.append(process)


def called(host):
    """Words before a command that have it run on a host of this name, as far as it can tell."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return ["unshare", "--uts", *as_root, "sh", "-c", 'hostname "$0" && exec "$@"', host]


@pytest.fixture
def s3_url(tmp_path):
    (tmp_path / "s3").mkdir()
    with s3_server(tmp_path / "s3") as url:
        yield url


@pytest.fixture
def open_folder():
    """A folder that every user can enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def stack(tmp_path, open_folder, postgres_url, s3_url):
    folder = tmp_path / "stack"
    folder.mkdir()
    new_stack = Stack(folder, open_folder, postgres_url, s3_url)
    try:
        new_stack.up()
        yield new_stack
    except BaseException:
        print(new_stack.logs_of_processes())
        raise
    finally:
        new_stack.down()
    print(new_stack.logs_of_processes())
    assert working_inside(folder) == []


def working_inside(folder):
    """Command lines of processes whose working directory is in a folder."""
    command_lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(folder):
                command_lines.append((process / "cmdline").read_text().replace("\0", " "))
    return command_lines


@pytest.mark.timeout(900)
def test_an_experiment_goes_through_the_stack(tmp_path, stack, postgres_url, s3_url):
    model = tmp_path / "model"
    model.mkdir()
    (model / "train.py").write_text(SCRIPT)
    (model / "config.yaml").write_text(CONFIG)
    wait_for(lambda: len(stack.get("agents")["agents"]) == 2, 60, "both workers")
    assert {agent["id"] for agent in stack.get("agents")["agents"]} == set(WORKERS)
    id = stack.create("config.yaml", model)
    ended = stack.wait_for_end(id)
    assert ended["state"] == "STATE_COMPLETED", ended["stateReason"]
    assert ended["config"]["checkpoint_storage"]["type"] == "s3"

    trials = stack.trials(id)
    assert [t["bestValidation"]["metrics"]["avgMetrics"] for t in trials] == [{"loss": 0.25}] * 2
    for trial in trials:
        described = json.loads(stack.det("trial", "describe", trial["id"], "--metrics", "--json").stdout)
        assert described["trial"]["state"] == "STATE_COMPLETED"
        user = 10002 if os.geteuid() == 0 else os.geteuid()
        assert any(line.endswith(f"on the way {user}") for line in stack.logs(trial["id"]))

    checkpoints = stack.get(f"experiments/{id}/checkpoints")["checkpoints"]
    assert {c["training"]["trialId"] for c in checkpoints} == {t["id"] for t in trials}
    stored = objects(s3_url)
    for checkpoint in checkpoints:
        assert stored[f"checkpoints/{checkpoint['uuid']}/weights"] == 1000
    assert any(name.startswith("blobs/") for name in stored), "the code of the experiment"

    assert positions(postgres_url).keys() == set(WITH_DATABASE)
    assert min(positions(postgres_url).values()) > 0
    for name, port in stack.health_ports.items():
        assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=60).text == "ok\n", name
        numbers = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
        sizes = re.findall(rf'^steadfast_database_bytes{{owner="{name}"}} (\S+)$', numbers, re.MULTILINE)
        assert len(sizes) == (name in WITH_DATABASE)
        assert all(float(size) > 0 for size in sizes)


def objects(s3_url):
    """Name -> bytes of all that is in the stack's bucket."""
    listing = s3_client(s3_url, KEY, SECRET).list_objects("steadfast", recursive=True)
    return {each.object_name: each.size for each in listing}


def positions(url):
    """How far each service has saved the log, by the schemas of the database."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            schemas = [s for s in sa.inspect(connection).get_schema_names() if s in SERVICES]
            highest = "select max(position) from {}.positions"
            return {s: connection.execute(sa.text(highest.format(s))).scalar() for s in schemas}
    finally:
        engine.dispose()
