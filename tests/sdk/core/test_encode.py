import datetime
import decimal
import enum
import fractions
import json
import uuid

import pytest

from determined.core._encode import encode, encode_metrics


class Colour(enum.Enum):
    RED = 1


class Level(str, enum.Enum):  # noqa: UP042
    HIGH = "high"


class WithJson:
    def __json__(self):
        return {"inside": float("nan")}


def fake_array(module, value):
    """An object that only looks like one of numpy or torch."""
    made = type("Array", (), {"tolist": lambda self: value})
    made.__module__ = module
    return made()


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("text", "text"),
        (True, True),
        (None, None),
        (3, 3),
        (10**30, 10**30),
        (1.5, 1.5),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (b"caf\xc3\xa9", "café"),
        ((1, [float("inf")]), [1, ["Infinity"]]),
        ({"a": {"b": (1, 2)}, 3: 4}, {"a": {"b": [1, 2]}, "3": 4}),
        ({None: 1, True: 2, 1.5: 3}, {"null": 1, "true": 2, "1.5": 3}),
        (datetime.datetime(2024, 5, 1, 12, 30), "2024-05-01T12:30:00"),
        (Colour.RED, "RED"),
        (Level.HIGH, "high"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (decimal.Decimal("0.5"), 0.5),
        (fractions.Fraction(1, 4), 0.25),
        (WithJson(), {"inside": "NaN"}),
        (fake_array("numpy.core", [[1, 2.5]]), [[1, 2.5]]),
        (fake_array("torch", float("nan")), "NaN"),
        ("half \ud800 a pair", "half ? a pair"),
    ],
)
def test_value_becomes_plain(value, encoded):
    result = encode(value)
    assert result == encoded
    assert type(result) is type(encoded)
    json.dumps(result, allow_nan=False).encode()
    assert encode_metrics({"m": value}) == {"m": encoded}


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, fake_array("elsewhere", [1]), [object()], lambda: 1])
def test_anything_else_is_refused_with_the_metric_named(value):
    with pytest.raises(TypeError, match="Unserializable object"):
        encode(value)
    with pytest.raises(TypeError, match=r"metric 'loss': Unserializable object .* of type"):
        encode_metrics({"loss": value})


def test_metrics_must_be_a_dict():
    with pytest.raises(TypeError, match="dict of name to value, not list"):
        encode_metrics([("loss", 1.0)])


def test_encoding_is_a_snapshot():
    history = [1.0, 2.0]
    metrics = {"history": history, "loss": 1.0}
    encoded = encode_metrics(metrics)
    history.append(3.0)
    metrics["loss"] = 2.0
    assert encoded == {"history": [1.0, 2.0], "loss": 1.0}


def test_odd_names_stay_names():
    names = ["a/b", "with space", "50%", "ключ", "", "a.b", "bad \ud800"]
    assert list(encode_metrics(dict.fromkeys(names, 1))) == [*names[:-1], "bad ?"]


def test_numpy_values():
    np = pytest.importorskip("numpy")
    encoded = encode_metrics(
        {
            "f": np.float32(0.5),
            "i": np.int64(3),
            "b": np.bool_(True),
            "a": np.array([[1, 2]]),
            "n": np.float64("nan"),
        }
    )
    assert encoded == {"f": 0.5, "i": 3, "b": True, "a": [[1, 2]], "n": "NaN"}
    assert [type(v) for v in encoded.values()] == [float, int, bool, list, str]


def test_numpy_values_that_are_their_own_elements():
    np = pytest.importorskip("numpy")
    long = np.longdouble("0.5")
    assert encode_metrics({"l": long, "a": np.array([long, np.longdouble("nan")])}) == {
        "l": 0.5,
        "a": [0.5, "NaN"],
    }
    with pytest.raises(TypeError, match=r"metric 'c': Unserializable object .* of type clongdouble"):
        encode_metrics({"c": np.clongdouble(1 + 2j)})


def test_a_tensor_without_data_is_refused_with_the_metric_named():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"metric 'loss': Unserializable object .* of type Tensor: .*no data"):
        encode_metrics({"loss": torch.empty(1, device="meta")})


def test_torch_values():
    torch = pytest.importorskip("torch")
    weight = torch.tensor(0.5, requires_grad=True)
    assert encode_metrics(
        {"w": weight, "v": torch.arange(2), "h": torch.tensor(1.0, dtype=torch.bfloat16)}
    ) == {
        "w": 0.5,
        "v": [0, 1],
        "h": 1.0,
    }


def test_what_nests_too_deep_is_refused_where_it_is_reported():
    value = 1.0
    for _ in range(100):
        value = [value]
    assert encode_metrics({"a": value}) == {"a": value}
    with pytest.raises(TypeError, match="metric 'a': it nests deeper than 100 levels"):
        encode_metrics({"a": {"b": value}})


def test_more_metrics_than_a_report_may_have():
    assert len(encode_metrics(dict.fromkeys(map(str, range(100_000)), 1.0))) == 100_000
    with pytest.raises(ValueError, match="at most 100000 metrics, not 1048576"):
        encode_metrics(dict.fromkeys(range(2**20), 1.0))
