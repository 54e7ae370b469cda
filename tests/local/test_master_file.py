"""The configuration of a 0.25 master: each setting does something, or is named with the reason."""

import json
import sys
from pathlib import Path

import pytest

from services.local import __main__ as command
from services.local import master_file, supervisor
from services.local.home import Home, Plan
from services.local.master_names import SUPPORTED, SUPPORTED_STORAGES, UNUSED
from services.local.preconditions import CannotStart, check_same_options
from services.rest_requests import task_defaults
from services.rest_requests.settings import Settings, default_storage
from services.scheduler.pools import read_pools

TASKS = "task_container_defaults"
EXAMPLES = {
    "image": "python:3.12",
    "force_pull_image": True,
    "registry_auth": {"username": "u", "password": "p"},
    "environment_variables": ["A=1"],
    "add_capabilities": ["NET_ADMIN"],
    "drop_capabilities": ["MKNOD"],
    "shm_size_bytes": 1 << 30,
    "devices": [{"host_path": "/dev/fuse", "container_path": "/dev/fuse"}],
    "bind_mounts": [{"host_path": "/data", "container_path": "/data"}],
    "slurm": {"sbatch_args": ["--mem=1g"]},
    "pbs": {"pbsbatch_args": ["-V"]},
    "type": "priority",
    "fitting_policy": "worst",
    "allow_heterogeneous_fits": True,
    "preemption": True,
    "default_priority": 7,
    "pool_name": "gpu",
    "description": "the lab's",
    "max_aux_containers_per_agent": 3,
    "max_cpu_containers_per_agent": 3,
}
"""By the last word, of settings of pools that stand alone."""
PROVIDERS = {
    "slots_per_instance": 2,
    "min_instances": 1,
    "max_instances": 2,
    "max_idle_agent_period": "1m",
    "max_agent_starting_period": "2m",
    "notice_period": "3m",
    "slurm": {"partition": "gpu"},
    "kubernetes": {},
    "process": {},
}
VARIABLES = {
    "cluster_name": ("lab", "STEADFAST_CLUSTER_NAME", "lab"),
    "log.level": ("warn", "STEADFAST_LOG_LEVEL", "WARNING"),
    "security.authz.type": ("rbac", "STEADFAST_AUTHZ", "rbac"),
    "tensorboard_timeout": (600, "STEADFAST_TENSORBOARD_TIMEOUT", "600"),
    "notebook_timeout": (7200, "STEADFAST_NOTEBOOK_TIMEOUT", "7200"),
    "webhooks.base_url": ("https://lab.example", "STEADFAST_PUBLIC_URL", "https://lab.example"),
}


def placed(name, value):
    """The content of a file with one setting."""
    for part in reversed(name.split(".")):
        value = {part.removesuffix("[]"): [value] if part.endswith("[]") else value}
    return value


def pools_read(tmp_path, parsed):
    """What scheduler and gateway make of what a file says of pools."""
    path = tmp_path / "pools.json"
    path.write_text(json.dumps(parsed.pools))
    task_defaults.read.cache_clear()
    return read_pools(path), task_defaults.read(path).to_dict()


@pytest.mark.parametrize(
    "name", [name for name in SUPPORTED if name.startswith("resource_") or TASKS in name]
)
def test_a_setting_of_pools_is_applied(name, tmp_path):
    last = name.rpartition(".")[2]
    if name == "resource_manager.type":
        assert master_file.read(placed(name, "agent")).unused == {}
        assert "resource_manager.type: slurm" in master_file.read(placed(name, "slurm")).unused
        return
    plain = {"resource_pools": [{"pool_name": "a"}]}
    content = merged(plain, placed(name, EXAMPLES.get(last, "")))
    if ".provider." in name:
        kind = last if last in ("slurm", "kubernetes", "process") else "slurm"
        value = kind if last == "type" else PROVIDERS[last]
        plain = plain if last == "type" else merged(plain, placed("resource_pools[].provider.type", kind))
        content = merged(plain, placed(name, value))
    parsed = master_file.read(content)
    assert (parsed.unused, parsed.settings, parsed.port) == ({}, {}, None)
    manager = content.pop("resource_manager", {})  # whose scheduler stands at the top of a file with pools
    assert parsed.pools == content | manager
    before, after = pools_read(tmp_path, master_file.read(plain)), pools_read(tmp_path, parsed)
    # What an engine alone knows is in the file, which the provisioner reads.
    assert before != after or last in ("slurm", "kubernetes", "process")


def merged(base, other):
    if isinstance(base, dict) and isinstance(other, dict):
        return {key: merged(base.get(key), other.get(key)) for key in base | other}
    if isinstance(base, list) and isinstance(other, list):
        return [merged(*pair) for pair in zip(base, other, strict=True)]
    return base if other is None else other


@pytest.mark.parametrize("name", VARIABLES)
def test_a_setting_of_processes_is_applied(name):
    value, variable, expected = VARIABLES[name]
    parsed = master_file.read(placed(name, value))
    assert (parsed.settings, parsed.pools, parsed.unused) == ({variable: expected}, {}, {})


STORAGES = [
    {"type": "shared_fs", "host_path": "/c", "storage_path": "d", "save_trial_best": 2},
    {"type": "directory", "container_path": "/c", "save_experiment_best": 1, "save_trial_latest": 3},
    {
        "type": "s3",
        "bucket": "b",
        "access_key": "a",
        "secret_key": "s",
        "endpoint_url": "http://s3",
        "prefix": "p",
    },
    {"type": "gcs", "bucket": "b", "prefix": "p"},
    {"type": "azure", "container": "c", "account_url": "https://a.blob.core.windows.net", "credential": "k"},
    {"type": "azure", "container": "c", "connection_string": "AccountName=a;AccountKey=k"},
]


@pytest.mark.parametrize("storage", STORAGES, ids=lambda storage: storage["type"])
def test_the_checkpoint_storage_is_applied(storage):
    assert storage["type"] in SUPPORTED_STORAGES
    parsed = master_file.read({"checkpoint_storage": storage})
    assert default_storage(Settings(checkpoints=parsed.settings["STEADFAST_CHECKPOINTS"])) == storage
    assert parsed.unused == {}


def test_the_port_is_applied():
    assert master_file.read({"port": 9001}).port == 9001


def test_each_applied_setting_has_a_test():
    tried = {f"checkpoint_storage.{name}" for storage in STORAGES for name in storage}
    pools = {name for name in SUPPORTED if name.startswith("resource_") or TASKS in name}
    assert SUPPORTED.keys() == tried | pools | VARIABLES.keys() | {"port"}


@pytest.mark.parametrize("name", UNUSED)
def test_a_setting_without_effect_is_named_with_the_reason(name):
    parsed = master_file.read(placed(name, {"any": "value"}))
    (note,) = parsed.warnings()
    assert note == f"Note: {name.replace('[]', '[0]')} has no effect: {UNUSED[name]}"
    assert (parsed.settings, parsed.port) == ({}, None)
    assert parsed.pools in ({}, {"resource_pools": [{}]})


def test_nothing_is_both():
    assert SUPPORTED.keys() & UNUSED.keys() == set()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"clster_name": "a"}, 'clster_name is not a setting of a master; did you mean "cluster_name"?'),
        ({"db": {"hots": 1}}, 'did you mean "db.host"?'),
        (
            {"resource_pools": [{}, {"pol_name": "a"}]},
            "resource_pools[1].pol_name is not a setting of a master; did",
        ),
        ({"db": [1]}, "db: a map is expected, not [1]"),
        ({"resource_pools": {"a": 1}}, "resource_pools: a list is expected"),
        ([], "the file: a map is expected, not []"),
        ({"port": True}, "port must be 1 to 65535, not True"),
        ({"log": {"level": "loud"}}, "log.level must be one of trace, debug"),
        ({"security": {"authz": {"type": ["rbac"]}}}, "security.authz.type must be one of basic, rbac"),
        ({"tensorboard_timeout": "5m"}, "tensorboard_timeout must be a whole number of seconds, at least 1"),
        ({"notebook_timeout": 0}, "notebook_timeout must be a whole number of seconds, at least 1, not 0"),
        ({"cluster_name": 1}, "cluster_name must be a string, not 1"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(content, expected):
    with pytest.raises(CannotStart) as refused:
        master_file.read(content)
    assert expected in str(refused.value)


def test_an_unknown_name_is_reported_and_ignored():
    file = master_file.read({"zzz": {"a": 1}, 1: 1, "cluster_name": "lab", "db": {"zzz": 2}})
    assert file.settings == {"STEADFAST_CLUSTER_NAME": "lab"}
    (note,) = file.warnings()
    assert note.startswith("Note: zzz, 1, db.zzz have no effect: unknown setting")


def test_every_problem_is_reported_at_once():
    with pytest.raises(CannotStart) as refused:
        master_file.read({"prot": 1, "dbs": {}, "port": 0})
    assert len(str(refused.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("content", "expected", "why"),
    [
        ({"checkpoint_storage": {"type": "hdfs", "bucket": "b"}}, "checkpoint_storage of type hdfs", "azure"),
        (
            {"resource_pools": [{"pool_name": "a", "provider": {"type": "aws", "max_instances": 3}}]},
            "resource_pools[0].provider of type aws",
            "growing-pools",
        ),
    ],
)
def test_a_kind_that_is_not_there_is_named(content, expected, why):
    parsed = master_file.read(content)
    assert why in parsed.unused[expected]
    assert parsed.settings == {}
    assert parsed.pools in ({}, {"resource_pools": [{"pool_name": "a"}]})


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Starts no cluster, and says what would have been started."""
    plans = []
    monkeypatch.setattr(command, "up", lambda plan, home, **_: plans.append(plan) or plan.address)
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))

    def start(text, *words):
        path = tmp_path / "master.yaml"
        path.write_text(text)
        monkeypatch.setattr(sys, "argv", ["local", "up", "--master-config", str(path), *words])
        return command.main(), plans

    return start


def test_a_cluster_is_started_as_the_file_says(started, capsys):
    status, (plan,) = started(
        "port: 9001\ncluster_name: lab\ndb: {host: pg}\nresource_pools: [{pool_name: a}]"
    )
    assert (status, plan.port, plan.settings) == (0, 9001, {"STEADFAST_CLUSTER_NAME": "lab"})
    assert plan.pools_content == {"resource_pools": [{"pool_name": "a"}]}
    assert "Note: db.host has no effect" in capsys.readouterr().err


def test_the_command_line_comes_first(started):
    _, (plan,) = started(
        "port: 9001\ncluster_name: lab", "--port", "9002", "--set", "STEADFAST_CLUSTER_NAME=x"
    )
    assert (plan.port, plan.settings) == (9002, {"STEADFAST_CLUSTER_NAME": "x"})


@pytest.mark.parametrize("text", ["{", "prot: 1", "\x00"])
def test_a_file_that_makes_no_sense_starts_nothing(started, capsys, text):
    assert started(text) == (1, [])
    assert "master.yaml" in capsys.readouterr().err


def test_two_files_with_pools_are_refused(started, capsys):
    assert started("resource_pools: [{pool_name: a}]", "--pools", "b.yaml") == (1, [])
    assert "both" in capsys.readouterr().err


def test_the_supervisor_writes_the_file_of_the_pools(tmp_path):
    home = Home("test", tmp_path)
    content = {"resource_pools": [{"pool_name": "a"}]}
    plan = supervisor._add_pools_file(Plan(name="test", pools_content=content), home)
    assert json.loads(Path(plan.pools_file).read_text()) == content
    assert supervisor._add_pools_file(Plan(name="test"), home).pools_file == ""


def test_what_may_be_secret_is_not_shown(tmp_path):
    home = Home("test", tmp_path)
    home.write_plan(Plan(name="test", settings={"A": "secret", "B": "secret"}))
    wanted = Plan(
        name="test", settings={"A": "hidden"}, pools_content={"task_container_defaults": {"a": "hidden"}}
    )
    with pytest.raises(CannotStart) as refused:
        check_same_options(wanted, home, fresh=False)
    message = str(refused.value)
    assert "secret" not in message
    assert "hidden" not in message
    assert message.splitlines()[1:4] == [
        "  settings.A: changed",
        "  settings.B: removed",
        "  pools_content.task_container_defaults: new",
    ]
