"""What a completed configuration looks like."""

from __future__ import annotations

import copy
import random
from typing import Any

import msgspec
import pytest

from det_contracts.expconf import ConfigErrors, complete, sanity_check

SMALLEST: dict[str, Any] = {
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1000}},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/ckpt"},
}


def completed(**overlay: Any) -> dict[str, Any]:
    return complete(SMALLEST | overlay, seed=7, name="Experiment (one)")


def test_the_smallest_configuration_gets_every_default() -> None:
    config = completed()
    assert config.pop("environment")["environment_variables"] == {"cpu": [], "cuda": [], "rocm": []}
    assert config == {
        "name": "Experiment (one)",
        "description": None,
        "labels": [],
        "data": {},
        "workspace": "",
        "project": "",
        "entrypoint": "python3 train.py",
        "max_restarts": 5,
        "scheduling_unit": 100,
        "records_per_epoch": 0,
        "min_validation_period": {"batches": 0},
        "perform_initial_validation": False,
        "min_checkpoint_period": {"batches": 0},
        "checkpoint_policy": "best",
        "checkpoint_storage": {
            "type": "shared_fs",
            "host_path": "/ckpt",
            "storage_path": None,
            "propagation": "rprivate",
            "container_path": None,
            "checkpoint_path": None,
            "tensorboard_path": None,
            "save_experiment_best": 0,
            "save_trial_best": 1,
            "save_trial_latest": 1,
        },
        "hyperparameters": {},
        "searcher": {
            "name": "single",
            "metric": "loss",
            "max_length": {"batches": 1000},
            "smaller_is_better": True,
            "source_trial_id": None,
            "source_checkpoint_uuid": None,
        },
        "resources": {
            "slots_per_trial": 1,
            "max_slots": None,
            "resource_pool": "",
            "priority": None,
            "weight": 1,
            "shm_size": None,
            "devices": [],
            "slots": None,
            "native_parallel": False,
            "agent_label": None,
        },
        "reproducibility": {"experiment_seed": 7},
        "bind_mounts": [],
        "profiling": {
            "enabled": False,
            "begin_on_batch": 0,
            "end_after_batch": None,
            "sync_timings": True,
        },
        "optimizations": {
            "aggregation_frequency": 1,
            "average_aggregated_gradients": True,
            "average_training_metrics": True,
            "gradient_compression": False,
            "grad_updates_size_file": None,
            "mixed_precision": "O0",
            "tensor_fusion_threshold": 64,
            "tensor_fusion_cycle_time": 5,
            "auto_tune_tensor_fusion": False,
        },
        "debug": False,
        "log_policies": [],
        "slurm": {"slots_per_node": None, "gpu_type": None, "sbatch_args": []},
        "pbs": {"slots_per_node": None, "pbsbatch_args": []},
        "security": None,
        "tensorboard_storage": None,
        "data_layer": None,
        "internal": None,
    }


def method(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "metric": "loss", "max_length": {"epochs": 9}, **more}


@pytest.mark.parametrize(
    ("searcher", "defaults"),
    [
        (method("random", max_trials=3), {"max_concurrent_trials": 16}),
        (method("grid"), {"max_concurrent_trials": 16}),
        (
            method("async_halving", max_trials=3, num_rungs=2),
            {"divisor": 4, "max_concurrent_trials": 16, "stop_once": False},
        ),
        (
            method("adaptive_asha", max_trials=3),
            {
                "mode": "standard",
                "divisor": 4,
                "max_rungs": 5,
                "max_concurrent_trials": 16,
                "bracket_rungs": [],
                "stop_once": False,
            },
        ),
        ({"name": "custom", "metric": "loss", "own": {"deep": [1]}}, {"unit": None}),
        (
            method("tpe", max_trials=3),
            {"max_concurrent_trials": 16, "num_startup_trials": 10, "rungs": None},
        ),
        (
            method("tpe", max_trials=3, num_startup_trials=1, rungs={"divisor": 3}),
            {
                "max_concurrent_trials": 16,
                "rungs": {"max_rungs": 5, "divisor": 3, "stop_once": False},
            },
        ),
        (
            method("pbt", population_size=3, num_rounds=9),
            {
                "replace_function": {"truncate_fraction": 0.2},
                "explore_function": {"resample_probability": 0.2, "perturb_factor": 0.2},
            },
        ),
    ],
)
def test_defaults_of_search_methods(searcher: dict[str, Any], defaults: dict[str, Any]) -> None:
    shared = {"smaller_is_better": True, "source_trial_id": None, "source_checkpoint_uuid": None}
    assert completed(searcher=searcher, hyperparameters={"a": 1})["searcher"] == searcher | defaults | shared


RICH: dict[str, Any] = {
    "version": 0,
    "name": "mine",
    "description": "d",
    "labels": {"b": True, "a": True, "c": False},
    "data": {"url": None, 3: {"x": [1, None]}},
    "workspace": "w",
    "project": "p",
    "max_restarts": 0.0,
    "min_validation_period": {"epochs": 1, "batches": None},
    "checkpoint_storage": {"type": "s3", "bucket": "b", "prefix": "/pre/.//fix", "secret_key": "k"},
    "hyperparameters": {
        "null": None,
        "flag": False,
        "list": [1, {"type": "int"}],
        "text": "x",
        "group": {"deep": {"n": {"type": "int", "minval": 1, "maxval": 4}}, "empty": {}},
        "const": {"type": "const", "val": None},
        "map": {"type": "const", "val": {"a": 1}},
        "log": {"type": "log", "base": 10.0, "minval": -4, "maxval": -1, "count": 3},
        "double": {"type": "double", "minval": 0, "maxval": 0.5},
        "kind": {"type": "categorical", "vals": ["a", None, {"b": 1}]},
    },
    "searcher": method("adaptive_asha", max_trials=9, max_length=20, bracket_rungs=[2, 1]),
    "resources": {"shm_size": "1.5 GiB", "devices": ["/a:/b", "/c:/d:r"], "native_parallel": True},
    "environment": {
        "image": {"gpu": "i"},
        "environment_variables": {"gpu": ["A=1"], "cpu": ["B"]},
        "registry_auth": {"username": "u"},
        "proxy_ports": [{"proxy_port": 80}],
        "pod_spec": {"spec": {"containers": [{"name": "side", "image": "i"}]}},
    },
    "bind_mounts": [{"host_path": "/a", "container_path": "b"}],
    "security": {"kerberos": {"config_file": "f"}},
    "slurm": {"sbatch_args": ["-x"]},
    "log_policies": [{"pattern": "CUDA.*", "action": {"type": "cancel_retries"}}],
    "tensorboard_storage": {"type": "shared_fs", "host_path": "/t"},
    "data_layer": {"type": "whatever"},
}


@pytest.mark.parametrize("overlay", [{}, RICH], ids=["smallest", "rich"])
def test_a_completed_configuration_is_a_fixed_point(overlay: dict[str, Any]) -> None:
    config = completed(**overlay)
    assert complete(config, seed=99, name="other") == config
    again = msgspec.json.decode(msgspec.json.encode(config))
    assert complete(again, seed=99, name="other") == config


def test_normal_forms() -> None:
    config = completed(**RICH)
    assert config["labels"] == ["a", "b"]
    assert config["data"] == {"url": None, "3": {"x": [1, None]}}
    assert config["max_restarts"] == 0
    assert isinstance(config["max_restarts"], int)
    assert config["min_validation_period"] == {"epochs": 1}
    assert config["checkpoint_storage"]["prefix"] == "/pre/fix"
    assert config["searcher"]["max_length"] == 20
    assert config["resources"]["shm_size"] == 3 * 2**29
    assert config["resources"]["devices"] == [
        {"host_path": "/a", "container_path": "/b", "mode": "mrw"},
        {"host_path": "/c", "container_path": "/d", "mode": "r"},
    ]
    assert config["bind_mounts"][0] == {
        "host_path": "/a",
        "container_path": "b",
        "read_only": False,
        "propagation": "rprivate",
    }
    assert config["environment"]["proxy_ports"] == [
        {"proxy_port": 80, "proxy_tcp": False, "unauthenticated": False, "default_service_id": False}
    ]
    assert config["tensorboard_storage"] is None
    assert config["data_layer"] is None


def test_hyperparameters_are_kept_as_they_are() -> None:
    hyperparameters = completed(**RICH)["hyperparameters"]
    ranges = {"group": {"deep": {"n": {"count": None}}}, "double": {"count": None}}
    expected = RICH["hyperparameters"] | {
        "group": {"deep": {"n": {"type": "int", "minval": 1, "maxval": 4, "count": None}}, "empty": {}},
        "double": RICH["hyperparameters"]["double"] | ranges["double"],
    }
    assert hyperparameters == expected


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "s", [], [1, {"type": "int"}], {"a": None}])
def test_constants_of_every_json_type(value: Any) -> None:
    explicit = {"type": "const", "val": value}
    hyperparameters = completed(hyperparameters={"bare": value, "explicit": explicit})["hyperparameters"]
    assert hyperparameters == {"bare": value, "explicit": explicit}


LEGACY: list[tuple[Any, Any]] = [
    ("i", {"cpu": "i", "cuda": "i", "rocm": "i"}),
    ({"cpu": "c", "gpu": "g", "rocm": "r"}, {"cpu": "c", "cuda": "g", "rocm": "r"}),
    ({"cpu": "c", "gpu": "g", "cuda": "n", "rocm": "r"}, {"cpu": "c", "cuda": "n", "rocm": "r"}),
]


@pytest.mark.parametrize(("image", "expected"), LEGACY)
def test_images(image: Any, expected: Any) -> None:
    assert completed(environment={"image": image})["environment"]["image"] == expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (["A=1"], {"cpu": ["A=1"], "cuda": ["A=1"], "rocm": ["A=1"]}),
        ({"gpu": ["A=1"]}, {"cpu": [], "cuda": ["A=1"], "rocm": []}),
        ({"gpu": ["A=1"], "cuda": []}, {"cpu": [], "cuda": [], "rocm": []}),
        ({"gpu": ["A=1"], "cuda": None}, {"cpu": [], "cuda": ["A=1"], "rocm": []}),
    ],
)
def test_variables_by_device(variables: Any, expected: Any) -> None:
    config = completed(environment={"environment_variables": variables})
    assert config["environment"]["environment_variables"] == expected


@pytest.mark.parametrize(
    ("shm_size", "size"),
    [
        (123, 123),
        ("123", 123),
        ("1k", 1024),
        ("2 MB", 2 * 2**20),
        ("3GiB", 3 * 2**30),
        ("1.5 t", 3 * 2**39),
        ("1p", 2**50),
        ("7b", 7),
    ],
)
def test_memory_sizes(shm_size: Any, size: int) -> None:
    assert completed(resources={"shm_size": shm_size})["resources"]["shm_size"] == size


@pytest.mark.parametrize("path", ["sub", "sub/./deep", "/ckpt/sub", "/ckpt"])
def test_storage_paths_inside_the_host_path(path: str) -> None:
    sanity_check({"checkpoint_storage": {"type": "shared_fs", "host_path": "/ckpt/", "storage_path": path}})


@pytest.mark.parametrize("max_length", [1000, {"batches": 1000}, {"records": 5}, {"epochs": 1}])
def test_lengths_of_a_search(max_length: Any) -> None:
    assert completed(searcher=method("single", max_length=max_length))["searcher"]["max_length"] == max_length


def optional_paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every field of a completed configuration that may be null."""
    needed = {("entrypoint",), ("checkpoint_storage",), ("searcher",)}
    needed |= {("checkpoint_storage", key) for key in ("type", "host_path")}
    needed |= {("searcher", key) for key in ("name", "metric", "max_length")}
    paths = [] if path in needed or not path else [path]
    free = path[:1] in {("data",), ("hyperparameters",)} or path[-1:] in {("batches",), ("records",)}
    if free:
        return paths if len(path) == 1 else []
    if isinstance(value, dict):
        paths += [deep for key, item in value.items() for deep in optional_paths(item, (*path, key))]
    return paths


@pytest.mark.parametrize("path", optional_paths(completed()), ids=".".join)
def test_null_is_unset(path: tuple[str, ...]) -> None:
    config_without = msgspec.json.decode(msgspec.json.encode(SMALLEST))
    at = config_without
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at[path[-1]] = None
    assert complete(config_without, seed=7, name="Experiment (one)") == completed()


def test_the_input_is_left_alone() -> None:
    written = {**SMALLEST, "hyperparameters": {"g": {"a": [1]}}, "data": {"x": {"y": [1]}}}
    before = msgspec.json.encode(written)
    config = complete(written, defaults=[{"data": {"x": {"z": 1}}}], seed=1, name="n")
    config["data"]["x"]["y"].append(2)
    config["hyperparameters"]["g"]["a"].append(2)
    assert msgspec.json.encode(written) == before
    assert complete(written, seed=1, name="n")["labels"] is not complete(written, seed=1, name="n")["labels"]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [deep for key, item in inner for deep in places(item, (*path, key))]


ODD_VALUES = (
    None,
    0,
    -1,
    1.5,
    True,
    "x",
    [],
    {},
    ["a"],
    {"a": 1},
    {"type": "int"},
    {"name": "grid"},
    [{}],
    1e300,
)


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_configuration_is_refused_or_completes_to_a_fixed_point(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        damaged = copy.deepcopy(draw.choice([SMALLEST | RICH, completed(**RICH)]))
        *above, last = draw.choice(places(damaged))
        at: Any = damaged
        for key in above:
            at = at[key]
        at[last] = copy.deepcopy(draw.choice(ODD_VALUES))
        try:
            config = complete(damaged, seed=1, name="n")
        except ConfigErrors:
            continue
        assert complete(config, seed=2, name="m") == config
        assert config.keys() == completed().keys()


def test_environment_variables_may_be_names_with_values() -> None:
    variables = {"NAME": "x=y", "COUNT": 3, "RATE": 0.5, "ON": True}
    config = completed(environment={"environment_variables": variables})
    spelled = ["NAME=x=y", "COUNT=3", "RATE=0.5", "ON=true"]
    assert config["environment"]["environment_variables"] == {
        "cpu": spelled,
        "cuda": spelled,
        "rocm": spelled,
    }


@pytest.mark.parametrize("variables", [{"A": ["1"]}, {"A=B": "1"}, {"": "1"}, {"A": None}, {"cpu": "A=1"}])
def test_what_names_with_values_are_not(variables: Any) -> None:
    with pytest.raises(ConfigErrors, match="environment_variables"):
        completed(environment={"environment_variables": variables})
