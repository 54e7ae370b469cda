"""Which checkpoints stay: the vectors, and what holds of any experiment."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.checkpoints.retention import Candidate, Keep, kept_uuids

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/scheduling-vectors.json").read_text())[
    "checkpoint_retention"
]


def candidates(sign=1):
    return [
        Candidate(
            uuid=str(c["id"]),
            trial_id=c["trial"],
            steps=c["id"],
            stored=c["id"],
            metric=None if c["metric"] is None else sign * c["metric"],
            validated=c["id"],
        )
        for c in VECTORS["checkpoints"]
    ]


def case_name(case):
    return "-".join(str(case[f"save_{what}"]) for what in ("experiment_best", "trial_best", "trial_latest"))


@pytest.mark.parametrize("smaller_is_better", [True, False])
@pytest.mark.parametrize("case", VECTORS["cases"], ids=case_name)
def test_vectors(case, smaller_is_better):
    keep = Keep(case["save_experiment_best"], case["save_trial_best"], case["save_trial_latest"])
    all_candidates = candidates(1 if smaller_is_better else -1)
    assert (
        sorted(map(int, kept_uuids(all_candidates, keep, smaller_is_better=smaller_is_better)))
        == case["saved"]
    )


def candidate(uuid, **more):
    return Candidate(**{"uuid": uuid, "trial_id": 1, "steps": 1, "stored": 1} | more)


def test_equal_metrics_keep_the_older_validation():
    all_candidates = [candidate("new", metric=0.5, validated=9), candidate("old", metric=0.5, validated=2)]
    assert kept_uuids(all_candidates, Keep(1, 0, 0), smaller_is_better=True) == {"old"}
    assert kept_uuids(all_candidates, Keep(1, 0, 0), smaller_is_better=False) == {"old"}


def test_equal_steps_keep_what_was_stored_later():
    all_candidates = [candidate("first", steps=5, stored=1), candidate("second", steps=5, stored=2)]
    assert kept_uuids(all_candidates, Keep(0, 0, 1), smaller_is_better=True) == {"second"}


def test_a_checkpoint_without_a_validation_is_never_the_best():
    assert kept_uuids(
        [candidate("none"), candidate("bad", metric=1e9)], Keep(5, 5, 0), smaller_is_better=True
    ) == {"bad"}


def test_what_others_start_from_stays():
    assert kept_uuids(
        [candidate("a"), candidate("b")], Keep(0, 0, 0), smaller_is_better=True, protected={"a", "x"}
    ) == {"a"}


checkpoints = st.lists(
    st.builds(
        Candidate,
        uuid=st.uuids().map(str),
        trial_id=st.integers(1, 3),
        steps=st.integers(0, 9),
        stored=st.integers(),
        metric=st.none() | st.integers(-3, 3).map(float),
        validated=st.integers(),
    ),
    max_size=20,
)
keeps = st.builds(Keep, st.integers(0, 4), st.integers(0, 3), st.integers(0, 3))


@given(checkpoints, keeps, st.booleans())
def test_keeping_twice_is_keeping_once(all_candidates, keep, smaller_is_better):
    """So the rule may be asked again whenever something has moved."""
    stay = kept_uuids(all_candidates, keep, smaller_is_better=smaller_is_better)
    left = [c for c in all_candidates if c.uuid in stay]
    assert kept_uuids(left, keep, smaller_is_better=smaller_is_better) == stay


@given(checkpoints, keeps)
def test_no_more_stays_than_was_asked_for(all_candidates, keep):
    stay = kept_uuids(all_candidates, keep, smaller_is_better=True)
    assert stay <= {c.uuid for c in all_candidates}
    trials = {c.trial_id for c in all_candidates}
    assert len(stay) <= keep.experiment_best + len(trials) * (keep.trial_best + keep.trial_latest)
    for trial in trials if keep.trial_latest else ():
        newest = max((c for c in all_candidates if c.trial_id == trial), key=lambda c: (c.steps, c.stored))
        assert newest.uuid in stay
