"""Whoever reads the reference learns what each argument is and what comes back."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = ("core",)


def documented():
    """(name, function) of each public function and method on the pages of the Python API."""
    for page in PAGES:
        for name in re.findall(r"^::: (\S+)", (REFERENCE / f"{page}.md").read_text(), re.MULTILINE):
            yield from functions(name, resolve(name))


def resolve(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        above, _, last = name.rpartition(".")
        return getattr(resolve(above), last)


def functions(name, thing):
    if inspect.ismodule(thing):
        for each in thing.__all__:
            yield from functions(f"{name}.{each}", getattr(thing, each))
    elif inspect.isclass(thing):
        for each, member in inspect.getmembers(thing):
            if not each.startswith("_") and (inspect.isfunction(member) or inspect.ismethod(member)):
                yield f"{name}.{each}", member
    elif inspect.isfunction(thing):
        yield name, thing


def wanting(function):
    """What the docstring leaves open."""
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name not in ("self", "cls")]
    missing = [name for name in names if not re.search(rf"^    \*{{0,2}}{name}: ", text, re.MULTILINE)]
    returned = signature.return_annotation
    described = re.search(r"^Returns?\b", text, re.MULTILINE)
    if returned not in (None, "None", inspect.Signature.empty) and not described:
        missing.append("Returns")
    return missing


FUNCTIONS = dict(documented())


def test_the_pages_hold_the_public_api():
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_results_are_described(name):
    assert wanting(FUNCTIONS[name]) == []
