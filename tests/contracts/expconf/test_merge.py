"""How two partial configurations become one (experiment configuration spec, section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from det_contracts.expconf import ConfigErrors, complete, merge

MOUNT = {"host_path": "/h", "container_path": "c"}
OTHER = {"host_path": "/low", "container_path": "c"}
THIRD = {"host_path": "/low", "container_path": "d"}
INT = {"type": "int", "minval": 1, "maxval": 2}
CONST = {"type": "const", "val": 1}


def storage(**fields: Any) -> dict[str, Any]:
    return {"checkpoint_storage": fields}


def method(**fields: Any) -> dict[str, Any]:
    return {"searcher": fields}


def hps(**fields: Any) -> dict[str, Any]:
    return {"hyperparameters": fields}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "scalar": ({"debug": False}, {"debug": True}, {"debug": False}),
    "unset": ({}, {"debug": True}, {"debug": True}),
    "null": ({"debug": None}, {"debug": True}, {"debug": True}),
    "maps key by key": (
        {"data": {"a": 1, "deep": {"x": 1}}},
        {"data": {"a": 2, "b": 2, "deep": {"x": 2, "y": 2}}},
        {"data": {"a": 1, "b": 2, "deep": {"x": 1, "y": 2}}},
    ),
    "list as a whole": (
        method(name="adaptive_asha", bracket_rungs=[]),
        method(name="adaptive_asha", bracket_rungs=[1, 2]),
        method(name="adaptive_asha", bracket_rungs=[]),
    ),
    "entrypoint list": ({"entrypoint": ["a"]}, {"entrypoint": ["b", "c"]}, {"entrypoint": ["a"]}),
    "length is one value": (
        {"min_validation_period": {"epochs": 1}},
        {"min_validation_period": {"batches": 5}},
        {"min_validation_period": {"epochs": 1}},
    ),
    "bind mounts by container path": (
        {"bind_mounts": [MOUNT, MOUNT]},
        {"bind_mounts": [OTHER, THIRD]},
        {"bind_mounts": [MOUNT, MOUNT, THIRD]},
    ),
    "no bind mounts": ({"bind_mounts": []}, {"bind_mounts": [THIRD]}, {"bind_mounts": [THIRD]}),
    "devices by container path": (
        {"resources": {"devices": ["/a:/x"]}},
        {"resources": {"devices": ["/b:/x", "/b:/y"]}},
        {
            "resources": {
                "devices": [
                    {"host_path": "/a", "container_path": "/x"},
                    {"host_path": "/b", "container_path": "/y"},
                ]
            }
        },
    ),
    "proxy ports by port": (
        {"environment": {"proxy_ports": [{"proxy_port": 1, "proxy_tcp": True}]}},
        {"environment": {"proxy_ports": [{"proxy_port": 1}, {"proxy_port": 2}]}},
        {"environment": {"proxy_ports": [{"proxy_port": 1, "proxy_tcp": True}, {"proxy_port": 2}]}},
    ),
    "variables low first": (
        {"environment": {"environment_variables": ["A=high"]}},
        {"environment": {"environment_variables": {"cpu": ["A=low"], "gpu": ["B=low"]}}},
        {
            "environment": {
                "environment_variables": {
                    "cpu": ["A=low", "A=high"],
                    "cuda": ["B=low", "A=high"],
                    "rocm": ["A=high"],
                }
            }
        },
    ),
    "image by device": (
        {"environment": {"image": {"cpu": "high"}}},
        {"environment": {"image": "low"}},
        {"environment": {"image": {"cpu": "high", "cuda": "low", "rocm": "low"}}},
    ),
    "storage of another type": (
        storage(type="gcs", bucket="b", save_experiment_best=3),
        storage(save_experiment_best=10, save_trial_best=10, save_trial_latest=10),
        storage(type="gcs", bucket="b", save_experiment_best=3, save_trial_best=10, save_trial_latest=10),
    ),
    "specific part of another type stays out": (
        storage(type="gcs", bucket="b"),
        storage(type="s3", bucket="low", access_key="k", save_trial_best=4),
        storage(type="gcs", bucket="b", save_trial_best=4),
    ),
    "specific part of the same type": (
        storage(type="s3", bucket="b"),
        storage(type="s3", bucket="low", access_key="k"),
        storage(type="s3", bucket="b", access_key="k"),
    ),
    "high without a type": (
        storage(save_trial_best=2),
        storage(type="s3", bucket="low"),
        storage(type="s3", bucket="low", save_trial_best=2),
    ),
    "specific part of high without a type": (
        method(max_length=5),
        method(name="single", metric="m", max_length={"batches": 1}),
        method(name="single", metric="m", max_length=5),
    ),
    "low without a type": (
        method(name="single"),
        method(metric="m", max_length=5, max_trials=3),
        method(name="single", metric="m", max_length=5),
    ),
    "searchers of two kinds": (
        method(name="single", metric="m"),
        method(name="random", metric="low", smaller_is_better=False, max_trials=3, max_length=4),
        method(name="single", metric="m", smaller_is_better=False),
    ),
    "azure account of high": (
        storage(type="azure", account_url="u"),
        storage(type="azure", container="c", connection_string="s"),
        storage(type="azure", account_url="u", container="c"),
    ),
    "azure account of high without credential": (
        storage(type="azure", account_url="u"),
        storage(type="azure", account_url="low", credential="low"),
        storage(type="azure", account_url="u"),
    ),
    "azure account of low": (
        storage(type="azure", credential="k"),
        storage(type="azure", container="c", connection_string="s"),
        storage(type="azure", container="c", connection_string="s"),
    ),
    "hyperparameter is one value": (hps(a=CONST), hps(a=INT, b=INT), hps(a=CONST, b=INT)),
    "hyperparameter against group": (hps(a={"x": 1}), hps(a=INT), hps(a={"x": 1})),
    "null hyperparameter": (hps(a=None), hps(a=INT), hps(a=None)),
    "groups of hyperparameters": (
        hps(g={"a": 1, "deep": {"x": 1}}),
        hps(g={"a": INT, "b": 2, "deep": {"y": 2}}),
        hps(g={"a": 1, "b": 2, "deep": {"x": 1, "y": 2}}),
    ),
    "batch arguments low first": (
        {"slurm": {"sbatch_args": ["user"]}, "pbs": {"pbsbatch_args": ["user"]}},
        {"slurm": {"sbatch_args": ["cluster"]}, "pbs": {"pbsbatch_args": ["cluster"]}},
        {"slurm": {"sbatch_args": ["cluster", "user"]}, "pbs": {"pbsbatch_args": ["cluster", "user"]}},
    ),
    "labels of both": (
        {"labels": ["b", "a"]},
        {"labels": {"c": True, "a": True}},
        {"labels": ["a", "b", "c"]},
    ),
    "pod spec": (
        {"environment": {"pod_spec": {"spec": {"x": 1, "containers": [{"name": "a", "image": "high"}]}}}},
        {
            "environment": {
                "pod_spec": {
                    "spec": {
                        "x": 2,
                        "y": [{"name": "z"}],
                        "containers": [{"name": "a", "image": "low", "tty": True}, {"name": "b"}],
                    }
                }
            }
        },
        {
            "environment": {
                "pod_spec": {
                    "spec": {
                        "x": 1,
                        "y": [{"name": "z"}],
                        "containers": [{"name": "a", "image": "high", "tty": True}, {"name": "b"}],
                    }
                }
            }
        },
    ),
}


@pytest.mark.parametrize(("high", "low", "merged"), CASES.values(), ids=CASES)
def test_merge(high: dict[str, Any], low: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merge(high, low) == merged


@pytest.mark.parametrize("config", [case[0] for case in CASES.values()], ids=CASES)
def test_merging_with_nothing_changes_nothing(config: dict[str, Any]) -> None:
    assert merge(config, {}) == merge({}, config)


def test_a_null_parent_takes_the_default() -> None:
    low = {"environment": {"image": "low"}}
    assert merge({"environment": None}, low) == merge({}, low)


USER: dict[str, Any] = {
    "entrypoint": "x",
    "searcher": {"name": "single", "metric": "loss", "max_length": 1},
    "resources": {"priority": 7},
}
TEMPLATE = {"resources": {"priority": 1, "weight": 2}, "checkpoint_storage": {"save_trial_best": 9}}
CLUSTER = {"checkpoint_storage": {"type": "s3", "bucket": "b", "save_trial_best": 1, "save_trial_latest": 8}}


def test_earlier_defaults_are_more_specific() -> None:
    config = complete(USER, defaults=[TEMPLATE, {"resources": {"weight": 3}}, CLUSTER], seed=1, name="n")
    assert config["resources"]["priority"] == 7
    assert config["resources"]["weight"] == 2
    storage = config["checkpoint_storage"]
    assert (storage["type"], storage["save_trial_best"], storage["save_trial_latest"]) == ("s3", 9, 8)


def test_name_and_seed_are_used_only_when_unset() -> None:
    drawn = complete(USER, defaults=[CLUSTER], seed=5, name="drawn")
    assert (drawn["name"], drawn["reproducibility"]) == ("drawn", {"experiment_seed": 5})
    own = {"name": "own", "reproducibility": {"experiment_seed": 0}}
    explicit = complete(USER | own, defaults=[CLUSTER], seed=5, name="drawn")
    assert (explicit["name"], explicit["reproducibility"]) == ("own", {"experiment_seed": 0})


def test_conflicts_between_sides_are_found_after_merging() -> None:
    user = USER | {"profiling": {"begin_on_batch": 9}, "checkpoint_storage": {"bucket": 5}}
    with pytest.raises(ConfigErrors, match="invalid experiment configuration") as caught:
        complete(user, defaults=[{"profiling": {"end_after_batch": 3}}, CLUSTER], seed=1, name="n")
    assert caught.value.errors == (
        "<config>.checkpoint_storage.bucket: must be a string, not 5",
        "<config>.profiling: begin_on_batch must be less than end_after_batch",
    )
