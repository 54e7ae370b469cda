"""Configurations as people write them (client spec, section 4)."""

from __future__ import annotations

import json
import math

import pytest

from services.kit import yamlfile


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1.5E+2", 150.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("-7", -7),
        ("0o14", 12),
        ("012", 12),
        ("0x1F", 31),
        ("1_000", 1000),
        ("1_000.5", 1000.5),
        ("-0x1F", -31),
        ("0b11", 3),
        ("0x_", "0x_"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("false", False),
        ("~", None),
        ("", None),
        ("-.inf", -math.inf),
        ("2023-08-01", "2023-08-01"),
        ("12:30:45", "12:30:45"),
        ("'1e-3'", "1e-3"),
        ("[1, 2.0, x]", [1, 2.0, "x"]),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
    ],
)
def test_values_are_read_as_in_yaml_1_2(text, value):
    parsed = yamlfile.parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2", "line 4, column 3: found duplicate key 'c'"),
        ("a: b: c", "line 1, column 5"),
        ("a: 1\n--- \nb: 2", "line 2, column 1: expected a single document in the stream but found another"),
        ("a: !!python/object:os.system x", "line 1"),
        ("\0", "unacceptable character"),
        ("a: &a [*a]", "expands to more than"),
        ("[" * 5000 + "]" * 5000, "too deeply"),
        ("9" * 5000, "digits"),
        ("[" * 300_000, "too deeply"),
        ("- " * 300_000, "too deeply"),
        ("{b: " * 5000, "too deeply"),
        ("[" + "1, " * 200_000 + "]", "more than 100000 values"),
        ("a: *x", "line 1, column 4: found undefined alias 'x'"),
    ],
)
def test_what_cannot_be_read_says_where(text, message):
    with pytest.raises(yamlfile.YamlProblem, match=message):
        yamlfile.parse(text)


def test_a_few_lines_may_not_mean_billions_of_values():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(yamlfile.YamlProblem, match="more than 100000 values"):
        yamlfile.parse("\n".join(lines))


ROCKET = "\U0001f680"


@pytest.mark.parametrize(
    "name", [ROCKET, f"\\{ROCKET}", "\\ud83d\\ude80", f"\\\\{ROCKET}{ROCKET}", f'"{ROCKET}"', "plain"]
)
def test_a_character_that_json_escapes_as_two_is_one(name):
    """Before, a configuration whose name had an emoji was refused if it came as JSON of Python."""
    joined = yamlfile.join_surrogates(json.dumps({"name": name}))
    assert yamlfile.parse(joined) == json.loads(joined) == {"name": name}


@pytest.mark.parametrize(
    "text", ["name: \\ud83d\\ude80", '{"name": "\\ud83d"}', '{"name": "\\ude80\\ud83d"}']
)
def test_what_is_no_json_or_no_pair_stays(text):
    assert yamlfile.join_surrogates(text) == text


def test_an_experiment_may_be_named_by_an_emoji(gateway):
    gateway.log_in()
    searcher = {"name": "single", "metric": "x", "max_length": 1}
    body = {
        "config": json.dumps({"name": ROCKET, "entrypoint": "true", "searcher": searcher}),
        "validateOnly": True,
    }
    assert gateway.post("/api/v1/experiments", body)["config"]["name"] == ROCKET
