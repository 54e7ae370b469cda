"""What others ask of a completed configuration."""

from __future__ import annotations

from typing import Any

import pytest

from det_contracts import expconf
from det_contracts.expconf import (
    ConfigErrors,
    Length,
    Resources,
    Retention,
    complete,
    environment_variables,
    flatten,
    has_count,
    leaves,
    mask_secrets,
    random_name,
    resources,
    retention,
    revise,
)


def completed(**overlay: Any) -> dict[str, Any]:
    smallest = {
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1000}},
        "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "id", "secret_key": "hush"},
    }
    return complete(smallest | overlay, seed=7, name="Experiment (one)")


def test_environment_variables() -> None:
    config = completed(
        environment={"environment_variables": {"cpu": ["A=1", "B=x=y", "C", "A=2", "D="], "gpu": ["G=1"]}}
    )
    assert environment_variables(config, "cpu") == {"A": "2", "B": "x=y", "C": None, "D": ""}
    assert environment_variables(config, "cuda") == {"G": "1"}
    assert environment_variables(config, "rocm") == {}


def test_resources_and_retention() -> None:
    assert resources(completed()) == Resources(1, None, "", None, 1, 4294967296)
    section = {"slots_per_trial": 2, "max_slots": 8, "resource_pool": "p", "priority": 3, "weight": 0.5}
    assert resources(completed(resources=section | {"shm_size": "1k"})) == Resources(2, 8, "p", 3, 0.5, 1024)
    assert retention(completed()) == Retention(0, 1, 1)


def test_masked_hides_secrets_only() -> None:
    config = completed(environment={"registry_auth": {"username": "u", "password": "p"}})
    shown = mask_secrets(config)
    assert shown["checkpoint_storage"]["access_key"] == "********"
    assert shown["checkpoint_storage"]["secret_key"] == "********"
    assert shown["environment"]["registry_auth"]["password"] == "********"
    assert shown["environment"]["registry_auth"]["username"] == "u"
    assert shown["environment"]["registry_auth"]["auth"] is None
    assert config["checkpoint_storage"]["secret_key"] == "hush"
    assert mask_secrets(
        {"checkpoint_storage": {"type": "azure", "connection_string": "s", "credential": None}}
    ) == {"checkpoint_storage": {"type": "azure", "connection_string": "********", "credential": None}}
    assert mask_secrets({"name": "partial", "environment": None}) == {"name": "partial", "environment": None}


def test_length() -> None:
    assert Length.of({"epochs": 3}) == Length(3, "epochs")
    assert Length.of(5) == Length(5)
    assert Length(3, "epochs").to_config() == {"epochs": 3}
    assert Length(5).to_config() == 5
    for wrong in ({}, {"steps": 1}, True, "5", {"batches": 1, "epochs": 2}, {"batches": "1"}):
        with pytest.raises(ValueError, match="a length object must have one attribute"):
            Length.of(wrong)


def test_leaves_come_in_ascending_names_depth_first() -> None:
    space = {
        "b": 1,
        "a": {"z": {"type": "const", "val": {"k": 1}}, "c": {"d": [1]}},
        "B": None,
        "empty": {},
    }
    assert [".".join(path) for path, _ in leaves(space)] == ["B", "a.c.d", "a.z", "b"]
    assert flatten({"b": 1, "a": {"z": 0.5, "c": {"d": [1]}}}) == {"a.c.d": [1], "a.z": 0.5, "b": 1}


def test_has_count() -> None:
    assert has_count({"type": "categorical", "vals": [1]})
    assert has_count(3)
    assert has_count({"type": "int", "minval": 0, "maxval": 3, "count": 2})
    assert not has_count({"type": "double", "minval": 0, "maxval": 3, "count": None})


def test_random_name() -> None:
    drawn: list[int] = []

    def last(words: Any) -> str:
        drawn.append(len(set(words)))
        return str(words[-1])

    assert random_name(last) == "Experiment (wisely-witty-wren)"
    assert min(drawn) > 50


def test_revise_changes_what_may_change() -> None:
    config = completed(resources={"max_slots": 4})
    revised = revise(
        config,
        {
            "resources.max_slots": None,
            "name": "new",
            "labels": ["x"],
            "checkpoint_storage.save_trial_best": 0,
        },
    )
    assert revised["resources"]["max_slots"] is None
    assert (revised["name"], revised["labels"]) == ("new", ["x"])
    assert revised["checkpoint_storage"]["save_trial_best"] == 0
    assert config["name"] == "Experiment (one)"
    assert config["resources"]["max_slots"] == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "  "}, "`name` must not be an empty or whitespace string"),
        ({"searcher.metric": "x"}, "<config>.searcher.metric: cannot be changed after submit"),
        ({"resources.priority": 100}, "<config>.resources.priority: must be between 1 and 99, not 100"),
        ({"resources.weight": 0}, "weight must be greater than 0, not 0"),
        ({"resources.max_slots": 0}, "slots_per_trial must not be greater than max_slots"),
        ({"checkpoint_storage.save_trial_best": -1}, "must be at least 0, not -1"),
    ],
)
def test_revise_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        revise(completed(), changes)
    assert message in str(caught.value)


def test_exported_names_exist() -> None:
    assert all(hasattr(expconf, name) for name in expconf.__all__)
