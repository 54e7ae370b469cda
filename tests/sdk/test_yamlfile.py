from __future__ import annotations

import io
import math

import pytest

from determined import yamlfile
from determined.common import util


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5e+2", -50.0),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("0.1.2", "0.1.2"),
        ("e3", "e3"),
        (".", "."),
        ("012", 12),
        ("0o14", 12),
        ("-0o7", -7),
        ("0o9", "0o9"),
        ("0x1F", 31),
        ("0b11", 3),
        ("0x_", "0x_"),
        ("0o_", "0o_"),
        ("1_000.5", 1000.5),
        ("1_000", 1000),
        ("+12", 12),
        ("1:30", "1:30"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("n", "n"),
        ("true", True),
        ("False", False),
        ("tRue", "tRue"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("2020-01-01", "2020-01-01"),
        ("=", "="),
        ("'1e-3'", "1e-3"),
        ("!!str 1", "1"),
    ],
)
def test_scalars_follow_yaml_1_2(text, value):
    parsed = yamlfile.parse(f"a: {text}")["a"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_not_a_number_is_a_number():
    assert math.isnan(yamlfile.parse(".nan"))


@pytest.mark.parametrize(
    "value", ["1e-3", "yes", "0o14", "2020-01-01", "null", "1:30", "=", "<<", "", "12", " a"]
)
def test_strings_that_look_like_something_else_survive_a_round_trip(value):
    assert yamlfile.parse(yamlfile.dump({"a": value})) == {"a": value}


def test_dump_keeps_order_and_numbers():
    value = {"z": 1e-5, "a": {"n": None, "t": True, "i": -3, "f": 1e20, "l": [1, 2.5]}, "name": "größer"}
    text = yamlfile.dump(value)
    assert yamlfile.parse(text) == value
    assert list(yamlfile.parse(text)) == ["z", "a", "name"]
    assert "größer" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "c.yaml, line 3, column 1: duplicate key 'a'"),
        ("x:\n  y: 1\n  y: 2\n", "c.yaml, line 3, column 3: duplicate key 'y'"),
        ("a: [1\nb: 2\n", "c.yaml, line 2, column"),
        ("a: b: c\n", "c.yaml, line 1, column 5: mapping values are not allowed here"),
        ("a: *nothing\n", "c.yaml, line 1, column 4"),
        ("a: \x07", "c.yaml"),
        ("a: 1\n---\nb: 2\n", "c.yaml, line 2, column 1: expected a single document in the stream but found"),
        ("[" * 5000, "c.yaml: it is nested too deeply"),
        ("a: " + "9" * 5000, "c.yaml: Exceeds the limit"),
    ],
)
def test_problems_name_the_place(text, message):
    with pytest.raises(yamlfile.YamlProblem) as caught:
        yamlfile.parse(text, "c.yaml")
    assert str(caught.value).startswith(message)


def test_a_merged_key_may_be_overridden():
    text = "base: &base {a: 1, b: 2}\nmore:\n  <<: *base\n  b: 3\n"
    assert yamlfile.parse(text)["more"] == {"a": 1, "b": 3}


def test_a_number_and_a_string_are_different_keys():
    assert yamlfile.parse("1: a\n'1': b\n") == {1: "a", "1": "b"}


def test_load_names_the_file(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(yamlfile.YamlProblem, match=r"bad\.yaml is not UTF-8"):
        yamlfile.load(path)
    path.write_text("a: 1e-3")
    assert yamlfile.load(path) == {"a": 0.001}


def test_the_name_that_clients_import():
    assert util.safe_load_yaml_with_exceptions(io.StringIO("lr: 1e-3")) == {"lr": 0.001}
    assert util.safe_load_yaml_with_exceptions("lr: 1e-3") == {"lr": 0.001}
    with pytest.raises(ValueError, match="line 2"):
        util.safe_load_yaml_with_exceptions(io.StringIO("a: 1\na: 2"))
    assert (util._LEGACY_TRAINING, util._LEGACY_VALIDATION) == ("training", "validation")
