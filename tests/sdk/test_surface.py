"""The library beside the public names of Determined 0.25 (tests/vectors/surface-0.25.json).

A call that 0.25 takes is one that this library takes: the same parameters at the same places, of the same
kinds and with the same defaults. More parameters, with defaults, may follow. What differs on purpose stands
in the table of docs/site_builder/surface.py with its reason, what is not there in `determined._absent`; a
row that is no longer true fails.
"""

import enum
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from determined import _absent
from docs.site_builder.surface import DIFFERENT

SURFACE = json.loads((Path(__file__).parents[1] / "vectors" / "surface-0.25.json").read_text())


def without_addresses(text):
    """The surface writes objects as `<...>`, which is no Python: they stand for a default, whichever."""
    while (shorter := re.sub(r"<[^<>]*>", "...", text)) != text:
        text = shorter
    return text


def parameters(signature):
    """Without the object that a method is of."""
    return [
        (p.name, p.kind, p.default) for p in signature.parameters.values() if p.name not in ("self", "cls")
    ]


def declared_parameters(text):
    # A mark of its own for what was not given.
    made = {"_arg_not_provided": ...}
    source = without_addresses(text[text.index("(") :])
    exec(f"from __future__ import annotations\ndef declared{source}: pass", {}, made)  # noqa: S102 - our own file
    return parameters(inspect.signature(made["declared"]))


def unfit(declared, ours):
    """Why a call of 0.25 would not be taken; None if it would."""
    by_name = {name: (place, kind, default) for place, (name, kind, default) in enumerate(ours)}
    takes_all = any(kind is inspect.Parameter.VAR_KEYWORD for _, kind, _ in ours)
    for place, (name, kind, default) in enumerate(declared):
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            if not any(offered_kind == kind for _, offered_kind, _ in ours):
                return f"no {kind.description} arguments"
            continue
        if name not in by_name:
            return f"no parameter {name}" if not takes_all else None
        our_place, our_kind, our_default = by_name[name]
        if our_kind is not kind or (kind is not inspect.Parameter.KEYWORD_ONLY and our_place != place):
            return f"{name} is at place {our_place}, {our_kind.description}"
        if default is inspect.Parameter.empty or default is ...:
            continue
        if our_default is inspect.Parameter.empty or (our_default != default and default != "..."):
            return f"{name} is {our_default!r} by default"
    more = [name for name, _, default in ours[len(declared) :] if default is inspect.Parameter.empty]
    optional = {name for name, kind, _ in ours if kind in (kind.VAR_POSITIONAL, kind.VAR_KEYWORD)}
    declared_names = {name for name, _, _ in declared}
    more = [name for name in more if name not in optional | declared_names]
    return f"needs {more}" if more else None


def members():
    for module, names in SURFACE.items():
        for name, declared in names.items():
            path = f"{module}.{name}"
            if module in _absent.TABLE or path in _absent.TABLE:
                continue
            yield pytest.param(
                module, name, {"": declared} if isinstance(declared, str) else declared, id=path
            )


def is_taken(declared, attribute):
    if isinstance(attribute, classmethod | staticmethod):
        attribute = attribute.__func__
    return unfit(declared_parameters(declared), parameters(inspect.signature(attribute)))


def faults(owner, member, declared):
    if member == "file" or (member == "__init__" and inspect.isclass(owner) and issubclass(owner, enum.Enum)):
        return None
    if member == "bases":
        names = {ancestor.__name__ for ancestor in owner.__mro__}
        lost = [base for base in declared if base.split(".")[-1] not in names]
        return f"is no {lost}" if lost else None
    if member == "__init__" and owner.__init__ in (object.__init__, dict.__init__, Exception.__init__):
        return None
    if declared in ("property",) or declared.startswith("attr:"):
        there = (
            hasattr(owner, member)
            or member in getattr(owner, "__annotations__", {})
            or is_set_in_init(owner, member)
        )
        return None if there else "missing"
    attribute = owner if member == "" else inspect.getattr_static(owner, member, None)
    return "missing" if attribute is None else is_taken(declared, attribute)


def is_set_in_init(owner, member):
    """Whether objects have it once they are made."""
    return f"self.{member} = " in inspect.getsource(owner.__init__)


@pytest.mark.parametrize(("module", "name", "expected"), list(members()))
def test_a_call_of_0_25_is_a_call_of_ours(module, name, expected):
    if module.startswith(("determined.pytorch", "determined.transformers")):
        pytest.importorskip("torch")
    needed = {"determined.transformers": "transformers", "determined.keras": "keras"}.get(module)
    if needed is not None:
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    owner = getattr(importlib.import_module(module), name)
    mismatches = {}
    for member, what in expected.items():
        path = f"{module}.{name}.{member}".rstrip(".")
        why = faults(owner, member, what)
        if (path in DIFFERENT) != (why is not None):
            mismatches[path] = why or "stands in the table, and is the same"
    assert not mismatches


@pytest.mark.parametrize("name", sorted(_absent.TABLE))
def test_what_is_not_there_says_so(name):
    parent, _, last = name.rpartition(".")
    with pytest.raises(ImportError, match=re.escape(_absent.TABLE[name])):
        exec(f"from {parent} import {last}", {})  # noqa: S102
    with pytest.raises(ImportError, match=r"of Determined 0\.25 is not part"):
        importlib.import_module(name)


def test_a_name_that_nobody_knows_is_missing_as_usual():
    for module in ("determined", "determined.util", "determined.common.storage", "determined.common.api"):
        with pytest.raises(AttributeError, match="no attribute 'never_there'"):
            _ = importlib.import_module(module).never_there
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(f"{module}.never_there")


def test_what_is_not_there_costs_and_loads_nothing():
    code = (
        "import sys, determined, determined.common.api, determined.common.util, determined.tensorboard; "
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "requests", "numpy", "urllib3"} & {
        module.split(".")[0] for module in ran.stdout.split()
    }
