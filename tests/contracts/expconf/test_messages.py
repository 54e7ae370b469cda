"""Each message of the experiment configuration spec, with the path it belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from det_contracts.expconf import ConfigErrors, complete, sanity_check
from det_contracts.expconf.searcher import METHODS

SANITY = "version 0 experiment config is invalid"
COMPLETENESS = "invalid experiment configuration"
SMALLEST: dict[str, Any] = {
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1000}},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/ckpt"},
}


def searcher(name: str, **more: Any) -> dict[str, Any]:
    return {"searcher": {"name": name, "metric": "loss", "max_length": {"batches": 9}, **more}}


def hp(value: Any) -> dict[str, Any]:
    return {"hyperparameters": {"lr": value}}


def storage(**fields: Any) -> dict[str, Any]:
    return {"checkpoint_storage": fields}


def errors_of(config: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigErrors) as caught:
        complete(config, seed=1, name="n")
    return caught.value.errors


LENGTH = 'a length object must have one attribute named "batches", "records", or "epochs"'
ODD = """if a hyperparameter object's ["type"] is set, it must be one of "int", "double", "log", const", \
or "categorical\""""
*FIRST, LAST = METHODS
SEARCHERS = f'is not an object where object["name"] is one of {", ".join(map(repr, FIRST))}, or {LAST!r}'
STORAGES = """is not an object where object["type"] is one of 'shared_fs', 's3', 'gcs' or 'azure'"""
IMAGE = "is neither a string nor a map of cpu, cuda, or rocm to strings"
VARIABLES = "is neither a list of strings nor a map of cpu, cuda, or rocm to lists of strings"
DEVICE = "is neither a list of --device strings nor a map containing host_path, container_path, and mode"
SIZE = "must be a valid memory size"
PRECISION = "mixed_precision should be a string starting with an uppercase letter 'O'"
PREFIX = "prefix cannot contain /../"
OUTSIDE = "storage_path must either be a relative directory or a subdirectory of host_path"
RANGE = {"type": "int", "minval": 1, "maxval": 5}
ASHA = {"num_rungs": 2, "max_trials": 4}
PBT = {"num_rounds": 3}

ONE_FAULT: list[tuple[dict[str, Any], str]] = [
    ({"max_restarts": "5"}, '.max_restarts: must be an integer, not "5"'),
    ({"max_restarts": True}, ".max_restarts: must be an integer, not true"),
    ({"max_restarts": -1}, ".max_restarts: must be at least 0, not -1"),
    ({"max_restarts": 1.5}, ".max_restarts: must be an integer, not 1.5"),
    ({"scheduling_unit": 0}, ".scheduling_unit: must be at least 1, not 0"),
    ({"name": 3}, ".name: must be a string, not 3"),
    ({"debug": "yes"}, '.debug: must be true or false, not "yes"'),
    ({"data": [1]}, ".data: must be a map, not a list"),
    ({"labels": ["a", 1]}, ".labels: is neither a list of strings nor a map of strings to true or false"),
    ({"labels": {"a": 1}}, ".labels: is neither a list of strings nor a map of strings to true or false"),
    ({"entrypoint": 5}, ".entrypoint: must be a string or a list of strings"),
    ({"entrypoint": ["python3", 5]}, ".entrypoint: must be a string or a list of strings"),
    ({"checkpoint_policy": "some"}, '.checkpoint_policy: must be one of best, all, none, not "some"'),
    ({"sercher": {}}, '.sercher: unknown field, did you mean "searcher"?'),
    ({"zzz": 1}, ".zzz: unknown field"),
    ({"internal": {}}, ".internal: must be null"),
    ({"reproducibility": {"experiment_seed": -1}}, ".reproducibility.experiment_seed: must be between"),
    ({"reproducibility": {"experiment_seed": 2**32}}, ".reproducibility.experiment_seed: must be between"),
    # Lengths
    ({"min_validation_period": {}}, f".min_validation_period: {LENGTH}"),
    ({"min_validation_period": {"batches": 1, "epochs": 1}}, f".min_validation_period: {LENGTH}"),
    ({"min_validation_period": 5}, f".min_validation_period: {LENGTH}"),
    ({"min_checkpoint_period": {"steps": 5}}, f".min_checkpoint_period: {LENGTH}"),
    ({"min_checkpoint_period": {"epochs": -5}}, ".min_checkpoint_period.epochs: must be at least 0, not -5"),
    (searcher("single", max_length=0), ".searcher.max_length: must be at least 1, not 0"),
    (searcher("single", max_length={"batches": 0}), ".searcher.max_length.batches: must be at least 1"),
    (searcher("single", max_length="9"), f".searcher.max_length: {LENGTH}"),
    (searcher("async_halving", **ASHA, max_length=9), f".searcher.max_length: {LENGTH}"),
    # Hyperparameters
    ({"hyperparameters": []}, ".hyperparameters: must be a map, not a list"),
    (hp({"type": "int", "minval": 2, "maxval": 2}), ".hyperparameters.lr: minval must be less than maxval"),
    (hp({"type": "double", "minval": 2, "maxval": 1.5}), ".lr: minval must be less than maxval"),
    (hp({"type": "int", "minval": 2.5, "maxval": 4}), ".lr.minval: must be an integer, not 2.5"),
    (hp({"type": "int", "maxval": 4}), ".hyperparameters.lr.minval: is required and not set"),
    (hp({**RANGE, "count": 0}), ".hyperparameters.lr.count: must be at least 1, not 0"),
    (hp({**RANGE, "base": 10}), ".hyperparameters.lr.base: unknown field"),
    (hp({"type": "log", "minval": 1, "maxval": 2}), ".hyperparameters.lr.base: is required"),
    (hp({**RANGE, "type": "log", "base": 0}), ".lr.base: must be greater than 0, not 0"),
    (hp({"type": "log", "base": 10, "minval": 1, "maxval": 10**9}), ".lr: the range goes beyond"),
    (hp({"type": "double", "minval": -1e308, "maxval": 1e308}), ".lr: the range goes beyond"),
    (hp({"type": "categorical", "vals": []}), ".hyperparameters.lr.vals: must hold at least one value"),
    (hp({"type": "categorical"}), ".hyperparameters.lr.vals: is required"),
    (hp({"type": "const"}), ".hyperparameters.lr.val: is required"),
    (hp({"type": "uniform"}), f".hyperparameters.lr: {ODD}"),
    (hp({"type": None}), f".hyperparameters.lr: {ODD}"),
    (hp({"type": {"type": "int"}}), f".hyperparameters.lr: {ODD}"),
    (hp({"deep": {"er": {"type": "x"}}}), f".hyperparameters.lr.deep.er: {ODD}"),
    # Searchers
    (searcher("bayesian"), f".searcher: {SEARCHERS}"),
    (searcher(7), f".searcher: {SEARCHERS}"),  # type: ignore[arg-type]
    ({"searcher": "single"}, f".searcher: {SEARCHERS}"),
    (searcher("single", max_trials=3), ".searcher.max_trials: unknown field"),
    (searcher("random", max_trials=0), ".searcher.max_trials: must be at least 1, not 0"),
    (searcher("random", max_trials=1, max_concurrent_trials=-1), ".searcher.max_concurrent_trials: must be"),
    (searcher("async_halving", **ASHA, divisor=1), ".searcher.divisor: must be greater than 1, not 1"),
    (searcher("async_halving", max_trials=4, num_rungs=0), ".searcher.num_rungs: must be at least 1"),
    (searcher("adaptive_asha", max_trials=4, mode="fast"), ".searcher.mode: must be one of aggressive"),
    (searcher("adaptive_asha", max_trials=4, bracket_rungs=[2, 0]), ".searcher.bracket_rungs[1]: must be"),
    (searcher("tpe", max_trials=4, num_startup_trials=0), ".searcher.num_startup_trials: must be at least 1"),
    (searcher("tpe", max_trials=4, rungs=3), ".searcher.rungs: must be a map, not"),
    (searcher("tpe", max_trials=4, rungs={"divisor": 1}), ".searcher.rungs.divisor: must be greater than 1"),
    (
        searcher("tpe", max_trials=4, rungs={"max_rung": 1}),
        'max_rung: unknown field, did you mean "max_rungs"',
    ),
    (searcher("pbt", **PBT, population_size=1001), ".searcher.population_size: must be between 1 and 1000"),
    (searcher("pbt", **PBT, max_trials=4), ".searcher.max_trials: unknown field"),
    (searcher("pbt", num_rounds=10), ".searcher.max_length: must be at least num_rounds"),
    (
        searcher("pbt", **PBT, replace_function={"truncate_fraction": 0.6}),
        ".searcher.replace_function.truncate_fraction: must be at most 0.5",
    ),
    (
        searcher("pbt", **PBT, explore_function={"resample_probability": 1.5}),
        ".searcher.explore_function.resample_probability: must be at most 1",
    ),
    (
        searcher("pbt", **PBT, explore_function={"perturb_factor": -1}),
        ".searcher.explore_function.perturb_factor: must be at least 0, not -1",
    ),
    (searcher("custom", unit="steps"), ".searcher.unit: must be one of batches, records, epochs"),
    (searcher("single", smaller_is_better="no"), ".searcher.smaller_is_better: must be true or false"),
    # Storage
    (storage(type="hdfs", hdfs_url="x"), f".checkpoint_storage: {STORAGES}"),
    ({"checkpoint_storage": "s3"}, f".checkpoint_storage: {STORAGES}"),
    (storage(type="s3", bucket="b", prefix=".."), f".checkpoint_storage.prefix: {PREFIX}"),
    (storage(type="s3", bucket="b", prefix="../x"), f".checkpoint_storage.prefix: {PREFIX}"),
    (storage(type="s3", bucket="b", prefix="x/.."), f".checkpoint_storage.prefix: {PREFIX}"),
    (storage(type="gcs", bucket="b", prefix="x/../y"), f".checkpoint_storage.prefix: {PREFIX}"),
    (storage(type="s3", bucket="b", save_trial_best=-1), ".save_trial_best: must be at least 0, not -1"),
    (storage(type="shared_fs", host_path="/a", storage_path="/b"), f".checkpoint_storage: {OUTSIDE}"),
    (storage(type="shared_fs", host_path="/a", storage_path="/ab"), f".checkpoint_storage: {OUTSIDE}"),
    (storage(type="shared_fs", host_path="/a", storage_path="../b"), f".checkpoint_storage: {OUTSIDE}"),
    (storage(type="shared_fs", host_path="a"), ".host_path: host_path must be an absolute path"),
    (
        storage(type="directory", container_path="a"),
        ".container_path: container_path must be an absolute path",
    ),
    (
        storage(type="azure", container="c", connection_string="s", credential="k"),
        ".checkpoint_storage: credential and connection_string must not both be set",
    ),
    # Resources
    ({"resources": {"slots_per_trial": -1}}, ".resources.slots_per_trial: must be at least 0, not -1"),
    ({"resources": {"priority": 0}}, ".resources.priority: must be between 1 and 99, not 0"),
    ({"resources": {"priority": 100}}, ".resources.priority: must be between 1 and 99, not 100"),
    ({"resources": {"weight": "1"}}, '.resources.weight: must be a number, not "1"'),
    ({"resources": {"shm_size": "4 apples"}}, f".resources.shm_size: {SIZE}"),
    ({"resources": {"shm_size": "4  g"}}, f".resources.shm_size: {SIZE}"),
    ({"resources": {"shm_size": True}}, f".resources.shm_size: {SIZE}"),
    ({"resources": {"shm_size": "9" * 400}}, ".resources.shm_size: must be between"),
    ({"resources": {"devices": ["/dev/a"]}}, f".resources.devices[0]: {DEVICE}"),
    ({"resources": {"devices": [{"host_path": "/dev/a"}]}}, f".resources.devices[0]: {DEVICE}"),
    ({"resources": {"devices": [7]}}, f".resources.devices[0]: {DEVICE}"),
    # Environment
    ({"environment": {"image": 3}}, f".environment.image: {IMAGE}"),
    ({"environment": {"image": {"tpu": "i"}}}, f".environment.image: {IMAGE}"),
    ({"environment": {"image": {"cpu": 3}}}, f".environment.image: {IMAGE}"),
    ({"environment": {"environment_variables": "A=1"}}, f".environment_variables: {VARIABLES}"),
    ({"environment": {"environment_variables": [1]}}, f".environment_variables: {VARIABLES}"),
    ({"environment": {"environment_variables": {"cpu": "A=1"}}}, f".environment_variables: {VARIABLES}"),
    ({"environment": {"proxy_ports": [{}]}}, ".environment.proxy_ports[0].proxy_port: is required"),
    ({"environment": {"ports": {"http": "80"}}}, ".environment.ports.http: must be an integer"),
    (
        {"environment": {"pod_spec": {"metadata": {"name": "p"}}}},
        ".environment.pod_spec.metadata.name: pod Name is not a configurable option",
    ),
    (
        {
            "environment": {
                "pod_spec": {"spec": {"containers": [{"name": "determined-container", "image": "i"}]}}
            }
        },
        ".spec.containers[0].image: container Image is not configurable, set it in the experiment config",
    ),
    # The rest
    ({"bind_mounts": [{"host_path": "a", "container_path": "b"}]}, "[0].host_path: host_path must be an abs"),
    (
        {"bind_mounts": [{"host_path": "/a", "container_path": "."}]},
        '.bind_mounts[0].container_path: container_path must not be "."',
    ),
    ({"bind_mounts": [{"host_path": "/a"}]}, ".bind_mounts[0].container_path: is required"),
    ({"bind_mounts": [None]}, ".bind_mounts[0]: must be a map, not null"),
    (
        {"profiling": {"begin_on_batch": 5, "end_after_batch": 4}},
        ".profiling: begin_on_batch must be less than end_after_batch",
    ),
    ({"optimizations": {"mixed_precision": "o1"}}, f".optimizations.mixed_precision: {PRECISION}"),
    ({"optimizations": {"aggregation_frequency": 0}}, ".aggregation_frequency: must be at least 1, not 0"),
    ({"slurm": {"slots_per_node": 0}}, ".slurm.slots_per_node: must be at least 1, not 0"),
    ({"pbs": {"sbatch_args": ["-x"]}}, ".pbs.sbatch_args: unknown field"),
    ({"security": {"kerberos": {}}}, ".security.kerberos.config_file: is required"),
    (
        {"log_policies": [{"pattern": "(", "action": {"type": "exclude_node"}}]},
        "[0].pattern: must be a valid",
    ),
    *(
        (
            {"log_policies": [{"pattern": pattern, "action": {"type": "exclude_node"}}]},
            "[0].pattern: must be a valid",
        )
        for pattern in ("(" * 5000 + ")" * 5000, "a{99999999999999999999}")
    ),
    ({"log_policies": [{"pattern": "x", "action": {"type": "z"}}]}, "[0].action.type: must be one of"),
    ({"tensorboard_storage": {"type": "azure"}}, ".tensorboard_storage: is not an object where"),
    # Data that JSON cannot hold
    ({"data": {"x": float("nan")}}, ".data.x: must be a finite number"),
    ({"data": {"x": 2**64}}, ".data.x: does not fit in 64 bits"),
    ({"data": {"x": {1, 2}}}, ".data.x: a set cannot be kept in a configuration"),
    ({"data": {None: 1}}, ".data: the key None must be a string"),
]


@pytest.mark.parametrize(("overlay", "message"), ONE_FAULT, ids=[message[:60] for _, message in ONE_FAULT])
def test_sanity(overlay: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        complete(SMALLEST | overlay, seed=1, name="n")
    assert caught.value.stage == SANITY
    assert len(caught.value.errors) == 1
    assert caught.value.errors[0].startswith("<config>")
    assert message in caught.value.errors[0]
    assert str(caught.value) == f"{SANITY}: {caught.value.errors[0]}"


TWO_NAMES = "workspace and project must both be included in config if one is provided"
GRID = searcher("grid")
NO_COUNT = "grid search is in use but count was not provided"
AZURE = "Exactly one of connection_string or account_url must be set"

INCOMPLETE: list[tuple[dict[str, Any], str]] = [
    ({"entrypoint": None}, ".entrypoint: managed experiments require entrypoint"),
    ({"entrypoint": ""}, ".entrypoint: managed experiments require entrypoint"),
    ({"entrypoint": []}, ".entrypoint: managed experiments require entrypoint"),
    ({"entrypoint": " \n"}, ".entrypoint: managed experiments require entrypoint"),
    ({"entrypoint": [""]}, ".entrypoint: managed experiments require entrypoint"),
    ({"searcher": None}, ".searcher: is required"),
    ({"searcher": {"metric": "loss"}}, ".searcher.name: is required"),
    ({"checkpoint_storage": None}, ".checkpoint_storage: is required"),
    ({"checkpoint_storage": {"save_trial_best": 3}}, ".checkpoint_storage.type: is required"),
    (searcher("single", metric=None), ".searcher.metric: is required"),
    (searcher("single", max_length=None), ".searcher.max_length: is required"),
    (searcher("random"), ".searcher.max_trials: is required"),
    (searcher("grid", max_length=None) | hp(1), ".searcher.max_length: is required"),
    (searcher("adaptive_asha"), ".searcher.max_trials: is required"),
    (searcher("async_halving", max_trials=3), ".searcher.num_rungs: is required"),
    (searcher("tpe"), ".searcher.max_trials: is required"),
    (searcher("pbt", num_rounds=3), ".searcher.population_size: is required"),
    (searcher("pbt", population_size=3), ".searcher.num_rounds: is required"),
    (storage(type="s3"), ".checkpoint_storage.bucket: is required"),
    (storage(type="gcs"), ".checkpoint_storage.bucket: is required"),
    (storage(type="shared_fs"), ".checkpoint_storage.host_path: is required"),
    (storage(type="directory"), ".checkpoint_storage.container_path: is required"),
    (storage(type="azure", container="c"), f".checkpoint_storage: {AZURE}"),
    (storage(type="azure", container="c", connection_string="a", account_url="b"), f": {AZURE}"),
    ({"workspace": "w"}, f"<config>: {TWO_NAMES}"),
    ({"project": "p"}, f"<config>: {TWO_NAMES}"),
    (
        {"resources": {"slots_per_trial": 8, "max_slots": 4}},
        ".resources: slots_per_trial must not be greater",
    ),
    ({"resources": {"max_slots": 0}}, ".resources: slots_per_trial must not be greater than max_slots"),
    (GRID, ".hyperparameters: a grid search needs at least one hyperparameter"),
    (GRID | {"hyperparameters": {"group": {}}}, ".hyperparameters: a grid search needs at least one"),
    *(
        (
            searcher(name, max_trials=3),
            f"'{name}' searcher has been removed and is not valid for new experiments; use 'adaptive_asha'",
        )
        for name in ("adaptive", "adaptive_simple", "sync_halving")
    ),
]


@pytest.mark.parametrize(("overlay", "message"), INCOMPLETE)
def test_completeness(overlay: dict[str, Any], message: str) -> None:
    sanity_check(SMALLEST | overlay)
    with pytest.raises(ConfigErrors, match=COMPLETENESS) as caught:
        complete(SMALLEST | overlay, seed=1, name="n")
    assert caught.value.stage == COMPLETENESS
    assert len(caught.value.errors) == 1
    assert message in caught.value.errors[0]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (RANGE, "lr"),
        ({"type": "double", "minval": 0, "maxval": 1, "count": None}, "lr"),
        ({"type": "log", "base": 10, "minval": 0, "maxval": 1}, "lr"),
        ({"deep": {"er": RANGE}}, "lr.deep.er"),
        ([1, [RANGE]], "lr[1][0]"),
    ],
)
def test_a_grid_needs_counts_everywhere(value: Any, path: str) -> None:
    assert errors_of(SMALLEST | GRID | hp(value)) == (f"<config>.hyperparameters.{path}: {NO_COUNT}",)


def test_version() -> None:
    sanity_check(SMALLEST | {"version": 0})
    sanity_check(SMALLEST | {"version": None})
    assert errors_of(SMALLEST | {"version": 1}) == ("invalid version: 1",)
    assert errors_of(SMALLEST | {"version": "0"}) == ('invalid version: "0"',)
    assert errors_of(SMALLEST | {"version": False}) == ("invalid version: False",)


@pytest.mark.parametrize(
    ("overlay", "what"),
    [
        (searcher("singel"), '; it is "singel", did you mean "single"?'),
        (searcher("asha_adaptive"), '; it is "asha_adaptive", did you mean "adaptive_asha"?'),
        (searcher("adaptve_simple"), '; it is "adaptve_simple", did you mean "adaptive_asha"?'),
        (searcher("bayesian"), '; it is "bayesian"'),
        (searcher(7), "; it is 7"),  # type: ignore[arg-type]
        (storage(type="s33"), '; it is "s33", did you mean "s3"?'),
        (hp({"type": "lgo", "minval": 0, "maxval": 1}), '; it is "lgo", did you mean "log"?'),
        (hp({"type": {"type": "int"}}), "; it is a map"),
        (searcher("single", max_length={"epoch": 9}), '; this one has "epoch", did you mean "epochs"?'),
        (searcher("single", max_length={"batches": 9, "epochs": 1}), "; this one has 2"),
        ({"min_validation_period": {}}, "; this one has 0"),
        ({"min_validation_period": "ten"}, '; this is "ten"'),
    ],
)
def test_a_list_of_choices_ends_with_what_was_written(overlay: dict[str, Any], what: str) -> None:
    assert errors_of(SMALLEST | overlay)[0].endswith(what)


@pytest.mark.parametrize("config", [None, "text", 5, []])
def test_a_configuration_is_a_map(config: object) -> None:
    assert len(errors_of(config)) == 1
    assert errors_of(config)[0].startswith("<config>: must be a map")


def test_all_failures_of_a_stage_come_together() -> None:
    config = {
        "max_restarts": -1,
        "searcher": {"name": "grid", "smaller_is_better": 1},
        "hyperparameters": {"a": RANGE, "b": {"type": "int", "minval": "x", "maxval": 3, "count": 1}},
        "oops": 1,
    }
    with pytest.raises(ConfigErrors) as caught:
        sanity_check(config)
    assert {error.split(":")[0] for error in caught.value.errors} == {
        "<config>.max_restarts",
        "<config>.searcher.smaller_is_better",
        "<config>.hyperparameters.a",
        "<config>.hyperparameters.b.minval",
        "<config>.oops",
    }
    assert all(error in str(caught.value) for error in caught.value.errors)

    assert {error.split(":")[0] for error in errors_of({"entrypoint": "x"})} == {
        "<config>.searcher",
        "<config>.checkpoint_storage",
    }


def test_a_fault_in_defaults_says_which() -> None:
    with pytest.raises(ConfigErrors, match=r"<defaults\[1\]>\.bogus: unknown field"):
        complete(SMALLEST, defaults=[{"debug": True}, {"bogus": 1}], seed=1, name="n")


def test_values_without_end_are_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    assert "nested more than 64 levels" in errors_of({"data": endless})[0]

    wide: Any = 0
    for _ in range(20):
        wide = [wide] * 10
    assert "more than 1000000 values" in errors_of({"data": {"x": wide}})[0]
