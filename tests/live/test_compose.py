"""The compose file: valid, and each service runs as it says, beside a real PostgreSQL and S3 store."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from services.kit import broker
from services.kit.blobs import s3_client
from tests.fixtures.local_cluster import LocalCluster, wait_for
from tests.fixtures.s3_server import KEY, SECRET, s3_server

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yaml"
OURS = ("searcher", "scheduler", "metrics", "checkpoints", "gateway", "worker")
BIN = Path(sys.executable).parent
SCRIPT = """
import determined as det
with det.core.init() as core:
    for op in core.searcher.operations():
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


def interpolated(text):
    """`${NAME:-default}` as compose would fill it in, without any variable set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def test_the_file_is_valid():
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_service_of_ours_is_there():
    assert set(OURS) <= set(yaml.safe_load(FILE.read_text())["services"])


class Stack(LocalCluster):
    """The compose file's services as local processes, with the same programs in place of images."""

    def __init__(self, folder, database_url, s3_url):
        self._folder = folder
        self.ports = {name: broker.free_port() for name in ("nats", "monitor", "gateway")}
        self.address = f"http://127.0.0.1:{self.ports['gateway']}"
        self.configuration = folder / "configuration"
        self._mapped = {
            r"postgresql://[^\s]+": database_url,
            "http://minio:9000": s3_url,
            "(nats|0.0.0.0):4222": f"127.0.0.1:{self.ports['nats']}",
            "gateway:8080": f"127.0.0.1:{self.ports['gateway']}",
            "/keys": str(folder / "keys"),
            "/data": str(folder / "data"),
            "/var/lib/steadfast": str(folder / "lib"),
        }
        text = FILE.read_text().replace("${S3_ACCESS_KEY:-steadfast}", KEY)
        text = text.replace("${S3_SECRET_KEY:-development-only}", SECRET)
        self._services = yaml.safe_load(interpolated(text))["services"]
        self._processes = []
        self.start_all()

    def start_all(self):
        import requests

        self._session, self._token = requests.Session(), ""
        setup = [*self._command("setup"), "--monitor-port", str(self.ports["monitor"])]
        subprocess.run(setup, env=self._environment("setup"), check=True, cwd=self._folder)
        self._start("nats", [str(BIN / "nats-server"), *self._command("nats")])
        broker.wait_until_healthy(self.ports["monitor"])
        for name in OURS:
            self._start(name, self._command(name))

    def _map(self, text):
        for pattern, value in self._mapped.items():
            text = re.sub(pattern, value.replace("\\", r"\\"), text)
        return text

    def _command(self, name):
        words = [self._map(str(word)) for word in self._services[name]["command"]]
        return [sys.executable, "-P", *words[1:]] if words[0] == "python" else words

    def _environment(self, name):
        wanted = {k: self._map(str(v)) for k, v in self._services[name].get("environment", {}).items()}
        if "STEADFAST_PORT" in wanted:
            wanted |= {"STEADFAST_PORT": str(self.ports["gateway"]), "STEADFAST_HOST": "127.0.0.1"}
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("STEADFAST_")}
        return inherited | wanted

    def _start(self, name, command):
        log = (self._folder / f"{name}.log").open("wb")
        with log:
            process = subprocess.Popen(
                command, env=self._environment(name), cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
            )
        self._processes.append(process)

    def down(self):
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def s3_url(tmp_path):
    (tmp_path / "s3").mkdir()
    with s3_server(tmp_path / "s3") as url:
        yield url


@pytest.mark.live
@pytest.mark.timeout(240)
def test_an_experiment_goes_through_the_stack(tmp_path, postgres_url, s3_url):
    stack = Stack(tmp_path, postgres_url, s3_url)
    try:
        model = tmp_path / "model"
        model.mkdir()
        (model / "train.py").write_text(SCRIPT)
        (model / "config.yaml").write_text(CONFIG)
        wait_for(lambda: stack.get("agents")["agents"], 60, "the worker")
        id = stack.create("config.yaml", model)
        ended = stack.wait_for_end(id)
        assert ended["state"] == "STATE_COMPLETED", ended["stateReason"]
        trials = stack.trials(id)
        assert [t["bestValidation"]["metrics"]["avgMetrics"] for t in trials] == [{"loss": 0.25}] * 2
        for checkpoint in stack.get(f"experiments/{id}/checkpoints")["checkpoints"]:
            stored = s3_client(s3_url, KEY, SECRET).list_objects(
                "steadfast", prefix=f"checkpoints/{checkpoint['uuid']}/", recursive=True
            )
            assert "weights" in {Path(o.object_name).name for o in stored}
        assert schemas_with_tables(postgres_url) >= {
            "searcher",
            "scheduler",
            "metrics",
            "checkpoints",
            "gateway",
        }
    except BaseException:
        for log in sorted(tmp_path.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}")
        raise
    finally:
        stack.down()


def schemas_with_tables(url):
    import sqlalchemy as sa

    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        found = connection.execute(
            sa.text(
                "select distinct table_schema from information_schema.tables where table_name = 'snapshots'"
            )
        )
        names = {row[0] for row in found}
    engine.dispose()
    return names
