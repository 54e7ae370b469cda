"""Draws: equal seeds give equal values, and each type keeps to its range (searchers spec, section 2)."""

import random
import struct
import uuid

import pytest

from services.searcher.methods import MethodError
from services.searcher.methods.rng import N, Rng, RngState
from services.searcher.methods.sampling import draw_trial, sample

SPACE = {
    "cat": {"type": "categorical", "vals": ["a", "b"]},
    "const": {"type": "const", "val": 3},
    "double": {"type": "double", "minval": -1, "maxval": 1},
    "group": {"z": {"type": "log", "base": 10, "minval": -3, "maxval": 0}, "plain": [1, 2]},
    "int": {"type": "int", "minval": -2, "maxval": 2},
    "wide": {"type": "int", "minval": -(2**40), "maxval": 2**40},
}


@pytest.mark.parametrize("seed", range(50))
def test_equal_seeds_draw_equal_values(seed):
    rng, other = Rng.seeded(seed), Rng.seeded(seed)
    assert draw_trial(SPACE, rng) == draw_trial(SPACE, other)
    assert rng.bits64() == other.bits64()
    assert rng.state() == other.state()


def test_values_keep_to_their_ranges():
    rng = Rng.seeded(3)
    drawn = [sample(SPACE, rng) for _ in range(300)]
    assert {d["cat"] for d in drawn} == {"a", "b"}
    assert {d["const"] for d in drawn} == {3}
    assert {d["int"] for d in drawn} == {-2, -1, 0, 1, 2}
    assert all(-1 <= d["double"] < 1 for d in drawn)
    assert all(0.001 <= d["group"]["z"] < 1 and d["group"]["plain"] == [1, 2] for d in drawn)
    assert all(abs(d["wide"]) <= 2**40 for d in drawn)
    assert list(drawn[0]) == sorted(SPACE)


def test_a_choice_of_one_draws_nothing():
    rng = Rng.seeded(3)
    before = rng.state()
    assert sample({"a": {"type": "categorical", "vals": ["only"]}, "b": 1}, rng) == {"a": "only", "b": 1}
    assert rng.state() == before


def test_request_ids_are_uuids_of_version_4():
    rng = Rng.seeded(5)
    ids = [rng.request_id() for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(uuid.UUID(id).version == 4 and str(uuid.UUID(id)) == id for id in ids)


def test_a_stream_goes_on_from_its_state():
    rng = Rng.seeded(11)
    [rng.bits32() for _ in range(N - 1)]
    for _ in range(3):
        other = Rng(RngState(rng.state().key, rng.state().position))
        assert [other.bits32() for _ in range(5)] == [rng.bits32() for _ in range(5)]


def test_the_key_is_shared_until_it_is_used_up():
    rng = Rng.seeded(11)
    rng.bits32()
    key = rng.state().key
    [rng.bits32() for _ in range(N - 1)]
    assert rng.state().key is key
    rng.bits32()
    assert rng.state().key != key


def test_unknown_types_are_refused():
    with pytest.raises(MethodError, match="unknown hyperparameter type 'odd'"):
        sample({"a": {"type": "odd"}}, Rng.seeded(1))


@pytest.mark.parametrize("seed", [0, 42, 2**32 - 1])
def test_numbers_equal_those_of_the_mersenne_twister(seed):
    rng = Rng.seeded(seed)
    words = struct.unpack(f"<{N}I", rng.state().key)
    other = random.Random()
    other.setstate((3, (*words, N), None))
    assert [rng.bits32() for _ in range(5 * N)] == [other.getrandbits(32) for _ in range(5 * N)]
