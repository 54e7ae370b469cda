"""The reference of the experiment configuration, from its schema and the meanings of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from det_contracts.expconf.composites import Field, ListOf, MapOf, Record, Union
from det_contracts.expconf.experiment import ENTRYPOINT, EXPERIMENT, LABELS
from det_contracts.expconf.hyperparameters import SAMPLED, Group
from det_contracts.expconf.length import LengthNode
from det_contracts.expconf.live import LIVE_FIELDS
from det_contracts.expconf.meanings import MEANINGS
from det_contracts.expconf.scalars import (
    Boolean,
    Choice,
    Ignored,
    Integer,
    MultiForm,
    Node,
    NullOnly,
    Number,
    Text,
)
from det_contracts.expconf.searcher import REMOVED

SECTIONS = ("searcher", "checkpoint_storage", "resources", "environment", "optimizations", "profiling")
DRAWN = {
    "name": "three random words",
    "checkpoint_storage": "the cluster's storage",
    "reproducibility.experiment_seed": "the time of submission",
}


class Row(NamedTuple):
    """One field as the reference shows it."""

    path: str
    """Names with dots between them."""
    branch: str
    """The member of a union that has the field; empty for all."""
    field: Field


def rows(record: Record, above: str = "", branch: str = "") -> Iterator[Row]:
    """Every field of the schema, parents before their children."""
    for name, field in record.fields.items():
        path = f"{above}{name}"
        yield Row(path, branch, field)
        yield from _below(field.node, f"{path}.", branch)


def _below(node: Node, above: str, branch: str) -> Iterator[Row]:
    match node:
        case Record():
            yield from rows(node, above, branch)
        case Union():
            yield from rows(Record(node.shared), above, branch)
            for name, member in node.branches.items():
                yield from rows(member, above, name)
        case ListOf(item=inner) | MapOf(item=inner) | MultiForm(inner=inner):
            yield from _below(inner, above, branch)


def meaning(path: str, branch: str = "") -> str:
    """The text of one field; raises KeyError where there is none."""
    parent, _, name = path.rpartition(".")
    return MEANINGS.get(f"{parent}[{branch}].{name}") or MEANINGS[path]


def kind(node: Node) -> str:
    """What a field takes, in words."""
    match node:
        case _ if node is ENTRYPOINT:
            return "string or list of strings"
        case _ if node is LABELS:
            return "list of strings"
        case Text():
            return "string"
        case Boolean():
            return "true or false"
        case Integer(low=low, high=high):
            return f"integer{_bounds(low, high)}"
        case Number(low=low, above=above):
            return (
                "number"
                + (f", at least {low:g}" if low is not None else "")
                + (f", more than {above:g}" if above is not None else "")
            )
        case Choice(words=words):
            return "one of " + ", ".join(f"`{word}`" for word in words)
        case LengthNode(bare=bare):
            return "length" + (", or an integer" if bare else "")
        case ListOf(item=item):
            return f"list of {_plural(kind(item))}"
        case Record() | Union() | MapOf() | Group():
            return "map"
        case NullOnly():
            return "null"
        case Ignored(inner=inner) | MultiForm(inner=inner):
            return kind(inner)
    return "anything"


def _bounds(low: int, high: int) -> str:
    if low == Integer().low:
        return ""
    return f", at least {low}" if high == Integer().high else f", {low} to {high}"


def _plural(singular: str) -> str:
    first, _, rest = singular.partition(",")
    return (first if first == "anything" else f"{first}s") + (f" ({rest.strip()})" if rest else "")


def _default(path: str, field: Field) -> str:
    if path in DRAWN:
        return DRAWN[path]
    if field.needed:
        return "required"
    return "" if field.default in (None, {}, "") else f"`{json.dumps(field.default)}`"


def _table(shown: list[Row], cut: int) -> list[str]:
    lines = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for path, branch, field in shown:
        live = " *Can be changed while it runs.*" if path in LIVE_FIELDS else ""
        cells = f"`{path[cut:]}`", kind(field.node), _default(path, field), meaning(path, branch) + live
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _of_section(name: str) -> list[str]:
    inside = [row for row in rows(EXPERIMENT) if row.path.startswith(f"{name}.")]
    cut = len(name) + 1
    lines = [f"## {name}\n", meaning(name), ""]
    shared = [row for row in inside if not row.branch]
    union = EXPERIMENT.fields[name].node
    if isinstance(union, Union):
        words = ", ".join(f"`{word}`" for word in union.branches if word not in REMOVED)
        lines.append(f"`{union.key}` is one of {words}. These fields go with each:\n")
    lines += _table(shared, cut) if shared else []
    if isinstance(union, Union):
        for member in dict.fromkeys(row.branch for row in inside if row.branch):
            lines += [
                f"### `{union.key}: {member}`\n",
                *_table([r for r in inside if r.branch == member], cut),
            ]
    return lines


def _hyperparameters() -> list[str]:
    lines = ["## hyperparameters\n", meaning("hyperparameters"), ""]
    lines.append(GROUPS)
    lines += ["| `type` | keys | value |", "|---|---|---|"]
    for name, record in SAMPLED.items():
        keys = ", ".join(f"`{key}`" for key in record.fields if key != "type")
        lines.append(f"| `{name}` | {keys} | {VALUES[name]} |")
    return [
        *lines,
        "\n`count` is how many points a grid takes from the range; the ends are among them.\n",
        EXAMPLE,
    ]


VALUES = {
    "const": "Always `val`.",
    "int": "A whole number from `minval` to `maxval`.",
    "double": "A number between `minval` and `maxval`.",
    "log": (
        "`base` to the power of a number between `minval` and `maxval`: "
        "`base: 10, minval: -4, maxval: -1` is 0.0001 to 0.1."
    ),
    "categorical": "One of `vals`.",
}
COUNT = "\n`count` is how many points a grid takes from the range; the ends are among them.\n"
GROUPS = """A plain value or a list is a constant. A map without `type` is a group, to any
depth. Its values reach the script under the name of the group. A map with `type` is one of:
"""
EXAMPLE = """```yaml
hyperparameters:
  global_batch_size: 64                                      # a constant
  learning_rate: {type: log, base: 10, minval: -4, maxval: -1}
  layers: {type: int, minval: 2, maxval: 8, count: 4}        # a grid takes 2, 4, 6, 8
  optimizer:                                                 # a group
    name: {type: categorical, vals: [adam, sgd]}
    weight_decay: {type: double, minval: 0.0, maxval: 0.1}
```
"""
INTRODUCTION = """<!-- generated by `make docs`; do not edit -->

# Experiment configuration

`det experiment create CONFIG CONTEXT` submits a YAML file with these fields. Unknown fields are
refused, so that a misspelled name never passes silently. `det preview-search CONFIG` shows what a
search would do, and creates nothing.

A *length* is a map with one of `batches`, `records` and `epochs`, such as `{epochs: 10}`. What is
left out comes from the template that is named at submission, then from the pool, the workspace and
the cluster, and last from the defaults below.

```yaml
name: digits
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: {epochs: 10}}
```

## Top level
"""


def page() -> str:
    """The whole reference as Markdown."""
    top = [row for row in rows(EXPERIMENT) if "." not in row.path]
    others = [
        row.path
        for row in top
        if row.path not in (*SECTIONS, "hyperparameters") and _has_fields(row.field.node)
    ]
    lines = [INTRODUCTION, *_table(top, 0), *_hyperparameters()]
    for name in (*SECTIONS, *others):
        lines += _of_section(name)
    return "\n".join(lines) + "\n"


def _has_fields(node: Node) -> bool:
    return next(_below(node, "", ""), None) is not None
