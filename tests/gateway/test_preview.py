"""Previews of searches, played by the searcher's own rules."""

from __future__ import annotations

import pytest

from det_contracts import queries
from services.searcher.preview import preview_search

CONFIG = {
    "searcher": {"name": "adaptive_asha", "metric": "loss", "max_length": 64, "max_trials": 8, "divisor": 4},
    "hyperparameters": {"lr": {"type": "double", "minval": 0, "maxval": 1}},
    "reproducibility": {"experiment_seed": 3},
}


@pytest.fixture
def playing(gateway):
    gateway.peers.values[queries.PreviewSearch] = preview_search
    return gateway


def test_both_forms_tell_the_same_search(playing):
    short = playing.send("POST", "/searcher/preview", CONFIG).json()["results"]
    assert sum(short.values()) == 8
    assert all(key.endswith(" V") for key in short)
    long = playing.send("POST", "/api/v1/preview-hp-search", {"config": CONFIG, "seed": 3}).json()[
        "simulation"
    ]
    assert long["seed"] == 3
    assert sum(trial["occurrences"] for trial in long["trials"]) == 8
    longest = max(trial["operations"][-2]["length"] for trial in long["trials"])
    assert longest == 64
    assert long["trials"][0]["operations"][1] == {"type": "RUNNABLE_TYPE_VALIDATE"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "grid"}, "count was not provided"),
        ({"max_trials": 100_000}, "more than 5000 trials"),
        ({"name": "nonsense"}, "searcher"),
    ],
)
def test_what_cannot_be_played_is_refused(playing, change, message):
    answer = playing.send("POST", "/searcher/preview", CONFIG | {"searcher": CONFIG["searcher"] | change})
    assert answer.status_code == 400
    assert message in answer.text


def test_a_request_that_is_no_configuration_is_refused(playing):
    assert playing.send("POST", "/searcher/preview", [1]).status_code == 400
    assert playing.send("POST", "/api/v1/preview-hp-search", {}).status_code == 400


def test_editors_get_the_fields_of_a_configuration(gateway):
    fields = {field["path"]: field for field in gateway.get("/api/v1/experiment-config/fields")["fields"]}
    assert fields["max_restarts"] == {
        "path": "max_restarts",
        "kind": "whole number",
        "default": 5,
        "required": False,
        "words": [],
        "only": [],
    }
    assert "adaptive_asha" in fields["searcher.name"]["words"]
