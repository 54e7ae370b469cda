"""Whoever reads the reference learns what each argument is and what comes back."""

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
MODULES = {
    "core": ("determined.core",),
    "core_v2": (),
    "pytorch": ("determined.pytorch",),
    "keras": ("determined.keras",),
    "deepspeed": ("determined.pytorch.deepspeed",),
    "transformers": ("determined.transformers",),
    "lightning": ("determined.lightning",),
    "client": ("determined.experimental.client",),
    "searcher": ("determined.searcher",),
}
"""Pages of the Python API, and the modules whose public names must all stand on them."""
NOT_SHOWN = re.compile(r"\.(_\w+|Dummy\w+|Session)$")
"""Names for tests and for existing scripts, which no page offers."""
AS_ANOTHER = re.compile(r"\bas `client\.(\w+)` does")


def entries(page):
    return re.findall(r"^::: (\S+)", (REFERENCE / f"{page}.md").read_text(), re.MULTILINE)


def resolve(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        above, _, last = name.rpartition(".")
        return getattr(resolve(above), last)


ENTRIES = {name: resolve(name) for page in MODULES for name in entries(page)}


def ours(thing):
    return getattr(thing, "__module__", "").startswith("determined")


def members(name, thing):
    """(name, function or property) of each public part of an entry, but for what another library made."""
    if inspect.isfunction(thing):
        yield name, thing
    elif inspect.isclass(thing):
        for each, member in inspect.getmembers(thing):
            code = member.fget if isinstance(member, property) else member
            if (
                not each.startswith("_")
                and (inspect.isfunction(code) or inspect.ismethod(code))
                and ours(code)
            ):
                yield f"{name}.{each}", member


def described(function):
    """The docstring, and that of the function of the client to which it refers."""
    text = inspect.getdoc(function) or ""
    other = AS_ANOTHER.search(text)
    return text + (f"\n{described(resolve(f'determined.experimental.client.{other[1]}'))}" if other else "")


def arguments(text):
    """The names under `Args:`."""
    sections = re.findall(r"^Args:\n((?:    .*\n|\n)+)", text + "\n", re.MULTILINE)
    return re.findall(r"^    \*{0,2}(\w+): ", "".join(sections), re.MULTILINE)


def faults(function):
    """What the docstring leaves open, and what it describes that is not there."""
    text = described(function)
    if isinstance(function, property):
        return [] if text else ["docstring"]
    signature = inspect.signature(function)
    names = {name for name in signature.parameters if name not in ("self", "cls")}
    open_ones = sorted(names ^ set(arguments(text)))
    returned = signature.return_annotation
    if returned not in (None, "None", "NoReturn", inspect.Signature.empty):
        open_ones += [] if re.search(r"^Returns?\b", text, re.MULTILINE) else ["Returns"]
    return open_ones if text else ["docstring"]


FUNCTIONS = dict(part for name, thing in ENTRIES.items() for part in members(name, thing))


def test_the_pages_hold_the_public_api():
    shown = list(ENTRIES.values())
    public = {
        f"{module}.{name}": getattr(importlib.import_module(module), name)
        for modules in MODULES.values()
        for module in modules
        for name in importlib.import_module(module).__all__
    }
    missing = [name for name, thing in public.items() if not any(thing is entry for entry in shown)]
    assert [name for name in missing if not (NOT_SHOWN.search(name) or inspect.ismodule(public[name]))] == []


def test_every_class_says_what_it_is():
    assert [name for name, thing in ENTRIES.items() if inspect.isclass(thing) and not thing.__doc__] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_results_are_described(name):
    assert faults(FUNCTIONS[name]) == []


def test_examples_are_python():
    examples = [
        (name, textwrap.dedent(code))
        for name, function in FUNCTIONS.items()
        for code in re.findall(r"^ *```python\n(.*?)^ *```", described(function), re.MULTILINE | re.DOTALL)
    ]
    assert len(examples) > 250
    for name, code in examples:
        ast.parse(code, name)
