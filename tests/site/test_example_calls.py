"""Examples in docstrings call what is there, with the arguments that it takes."""

import ast
import importlib
import inspect
import itertools
import re
import subprocess
import sys
import textwrap

import pytest

from tests.site.test_docstrings import ENTRIES, FUNCTIONS, NOT_SHOWN, ours

OTHERS = ("determined.errors", "determined.pytorch.samplers", "determined.tensorboard")
"""Modules whose names scripts use, and which have no page of their own."""
PRELUDE = """\
from pathlib import Path
from typing import Any
import determined as det
from determined import core, pytorch, searcher
from determined.experimental import client, core_v2
from determined.pytorch import samplers
core_context: det.core.Context
keras: Any
lightning: Any
transformers: Any
"""
MYPY = """\
[mypy]
ignore_missing_imports = True
check_untyped_defs = True
follow_imports = skip
disable_error_code = name-defined, union-attr, has-type, misc
[mypy-determined.*,det_contracts.*]
follow_imports = silent
"""
"""Names of the reader's script, such as `model`, are undefined. What an example asks for is never None."""
FAULTY = {
    "call": "client.create_user('ann')",
    "name": "core_context.train.no_such_name",
    "type": "pytorch.Batch(1).reached('one')",
}


def public_classes(module):
    made = importlib.import_module(module)
    names = getattr(made, "__all__", [name for name in vars(made) if not name.startswith("_")])
    return {f"{module}.{name}": getattr(made, name) for name in names if ours(getattr(made, name))}


CLASSES = {name: thing for name, thing in ENTRIES.items() if inspect.isclass(thing) and ours(thing)}
DOCUMENTED = CLASSES | FUNCTIONS | {k: v for module in OTHERS for k, v in public_classes(module).items()}


def examples(thing):
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", inspect.getdoc(thing) or "", re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in blocks]


def test_every_class_shows_its_use():
    bare = [name for name, thing in CLASSES.items() if not examples(thing) and not NOT_SHOWN.search(name)]
    assert bare == []


def script(codes):
    """One function for each example, and the name of the example for each line."""
    lines, names = PRELUDE.splitlines(), {}
    for name, code in codes:
        lines += [f"async def example_{len(lines)}():", *textwrap.indent(code, "    ").splitlines(), ""]
        names[len(lines)] = name
    return "\n".join(lines), names


def by_mypy(codes, folder):
    """(name of the example, error) of each that a type checker objects to."""
    text, names = script(codes)
    (folder / "examples.py").write_text(text)
    (folder / "mypy.ini").write_text(MYPY)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "examples.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    matches = re.findall(r"^examples\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(next(names[end] for end in names if end >= int(line)), error) for line, error in matches]


def test_examples_call_what_there_is(tmp_path):
    codes = [(name, code) for name, thing in DOCUMENTED.items() for code in examples(thing)]
    assert len(codes) > 400
    errors = by_mypy([*codes, *FAULTY.items()], tmp_path)
    assert [error for error in errors if error[0] not in FAULTY] == []
    assert {name for name, _ in errors} == set(FAULTY)


def results(code, names):
    """(value, what the comment of its line says) of each expression of an example that has such a comment."""
    for statement in ast.parse(code).body:
        line = code.splitlines()[statement.end_lineno - 1]
        if isinstance(statement, ast.Expr) and "    # " in line:
            value = eval(compile(ast.Expression(statement.value), "<example>", "eval"), names)  # noqa: S307
            yield value, ast.literal_eval(line.partition("# ")[2])
        else:
            exec(compile(ast.Module([statement], []), "<example>", "exec"), names)  # noqa: S102


@pytest.mark.parametrize(
    "name", [name for name, thing in DOCUMENTED.items() if ".samplers." in name and examples(thing)]
)
def test_examples_of_samplers_give_what_they_say(name):
    import torch

    from determined.pytorch import samplers

    names = {"dataset": range(100), "itertools": itertools, "samplers": samplers, "torch": torch}
    shown = [pair for code in examples(DOCUMENTED[name]) for pair in results(code, names)]
    assert [value for value, _ in shown] == [expected for _, expected in shown]
