"""YAML as the platform reads it: YAML 1.2 numbers, and no duplicate keys (client spec, section 4).

`1e-3` is a number, `yes` and `on` are strings, `0o14` and `012` are 12. Plain PyYAML follows YAML 1.1, where
a learning rate of `1e-3` is a string. Dates stay strings, because a configuration must be representable as
JSON.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import yaml

_INT = re.compile(r"[-+]?(?:[0-9][0-9_]*|0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)$")
_FLOAT = re.compile(
    r"""[-+]?(?:(?:\.[0-9][0-9_]*|[0-9][0-9_]*\.[0-9_]*)(?:[eE][-+]?[0-9]+)?
          |[0-9][0-9_]*[eE][-+]?[0-9]+
          |\.(?:inf|Inf|INF))$
       |\.(?:nan|NaN|NAN)$""",
    re.VERBOSE,
)
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)$")
_NULL = re.compile(r"(?:~|null|Null|NULL|)$")
_BASES = {"0o": 8, "0x": 16, "0b": 2}


class YamlProblem(ValueError):
    """The text is not valid YAML or has a duplicate key. The message names the position."""


def load(path: Path) -> Any:
    """Return the content of a YAML file. Raises `YamlProblem` or OSError."""
    return parse(read(path), str(path))


def read(path: Path) -> str:
    """Return the text of a file unchanged. Raises `YamlProblem` if it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise YamlProblem(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def parse(text: str, name: str = "the YAML text") -> Any:
    """Parse a YAML text. Raises `YamlProblem` naming `name`, line and column (both from 1)."""
    import yaml

    try:
        return yaml.load(text, _loader())  # noqa: S506 - a SafeLoader with other rules for scalars
    except yaml.MarkedYAMLError as error:
        raise YamlProblem(f"{name}{_place(error)}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise YamlProblem(f"{name}: {error}") from error


def dump(value: Any) -> str:
    """Return text that `parse` turns back into `value`. Keys keep their order."""
    import yaml

    return yaml.dump(value, Dumper=_dumper(), sort_keys=False, allow_unicode=True)


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""


@functools.cache
def _loader() -> type[yaml.SafeLoader]:
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own way to configure a class)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            _refuse_duplicates(node)
            return super().construct_mapping(node, deep)

    # Not part of YAML 1.2, but configurations share sections by `<<`.
    Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"<<$"), ["<"])
    for tag, pattern, first in _RESOLVERS:
        Loader.add_implicit_resolver(tag, pattern, first)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: _integer(node.value))
    return Loader


@functools.cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    # Keeps the YAML 1.1 rules in addition to ours, so that a string that looks like a number or a date under
    # either set of rules is quoted.
    class Dumper(yaml.SafeDumper):
        pass

    for tag, pattern, first in _RESOLVERS:
        Dumper.add_implicit_resolver(tag, pattern, first)
    return Dumper


_RESOLVERS = (
    ("tag:yaml.org,2002:bool", _BOOL, list("tTfF")),
    ("tag:yaml.org,2002:int", _INT, list("-+0123456789")),
    ("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789")),
    ("tag:yaml.org,2002:null", _NULL, ["~", "n", "N", ""]),
)


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    return sign * int(digits if base == 10 else digits[2:], base)


def _refuse_duplicates(node: yaml.MappingNode) -> None:
    import yaml

    keys: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        if (key.tag, key.value) in keys:
            raise yaml.constructor.ConstructorError(
                None, None, f"duplicate key '{key.value}'", key.start_mark
            )
        keys.add((key.tag, key.value))
