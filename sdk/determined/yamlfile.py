"""YAML as the platform reads it: YAML 1.2 numbers, and no duplicate keys (client spec, section 4).

`1e-3` is a number, `yes` and `on` are strings, `0o14` and `012` are 12. Plain PyYAML follows YAML 1.1, where
a learning rate of `1e-3` is a string. Dates stay strings, because a configuration must be representable as
JSON.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_contracts import yaml_scalars

if TYPE_CHECKING:
    import yaml


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
        raise YamlProblem(f"{name}{_place(error)}: {_fault(error)}") from error
    except RecursionError:
        raise YamlProblem(f"{name}: it is nested too deeply") from None
    # Python reads no integer of more than 4300 digits.
    except (yaml.YAMLError, ValueError) as error:
        raise YamlProblem(f"{name}: {error}") from error


def dump(value: Any) -> str:
    """Return text that `parse` turns back into `value`. Keys keep their order."""
    import yaml

    return yaml.dump(value, Dumper=_dumper(), sort_keys=False, allow_unicode=True)


def _fault(error: yaml.MarkedYAMLError) -> str:
    # Of a second document, the problem is only the end of a sentence.
    parts = (error.context, error.problem) if str(error.problem).startswith("but ") else (error.problem,)
    return " ".join(filter(None, parts)) or str(error.context)


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

    for rule in (yaml_scalars.MERGE, *yaml_scalars.SCALARS):
        Loader.add_implicit_resolver(*rule)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: yaml_scalars.integer(node.value))
    return Loader


@functools.cache
def _dumper() -> type[yaml.SafeDumper]:
    import yaml

    # Keeps the YAML 1.1 rules in addition to ours, so that a string that looks like a number or a date under
    # either set of rules is quoted.
    class Dumper(yaml.SafeDumper):
        pass

    for rule in yaml_scalars.SCALARS:
        Dumper.add_implicit_resolver(*rule)
    return Dumper


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
