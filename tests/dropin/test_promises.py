"""The five guides of 0.25, promise by promise, and what differed once: `promises.txt` says how it is held."""

import importlib
import inspect
import shlex
from pathlib import Path

import pytest
import yaml

from det_contracts import expconf
from determined.cli.cli import ROOT as COMMANDS
from determined.cli.grammar import Noun, find, read

ROOT = Path(__file__).parents[2]
STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}}


def promises():
    guide = ""
    for line in (ROOT / "tests/dropin/promises.txt").read_text().splitlines():
        if line.startswith("=="):
            guide = line.strip("= ")
        elif line and not line.startswith("#"):
            promise, _, held = line.partition(" | ")
            kind, _, what = held.partition(": ")
            yield pytest.param(kind, what, id=f"{guide}: {promise}")


def holds_det(words):
    typed = shlex.split(words)
    if typed[0] == "-m":
        typed = typed[2:]
    match = find(COMMANDS, typed)
    if isinstance(match.node, Noun):
        return f"{match.path} names no verb"
    if match.node.anything:
        return f"{match.path} is not offered"
    read(match.path, match.node, match.rest)
    return ""


def holds_conf(text):
    expconf.complete(yaml.safe_load(text), defaults=[STORAGE], seed=1, name="x")
    return ""


def holds_py(words):
    path, *names = words.split()
    target = resolve(path)
    if not names:
        return ""
    taken = inspect.signature(target).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    missing = [] if takes_all else [name for name in names if name not in taken]
    return f"{path} does not take {missing}" if missing else ""


def resolve(path):
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            target = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if not error.name or not path.startswith(error.name):
                pytest.skip(f"{error.name} is not installed")
            continue
        for name in parts[length:]:
            annotated = getattr(target, "__annotations__", {})
            target = (
                annotated[name] if name in annotated and not hasattr(target, name) else getattr(target, name)
            )
        return target
    raise ModuleNotFoundError(path)


def holds_launch(words):
    module, *rest = words.split()
    if importlib.util.find_spec(module) is None:
        return f"there is no module {module}"
    launcher = importlib.import_module(module)
    if hasattr(launcher, "parse_args"):
        launcher.parse_args(rest)
    return ""


def holds_file(path):
    return "" if (ROOT / path).exists() else f"there is no {path}"


def holds_has(words):
    path, _, text = words.partition(" | ")
    return "" if text in (ROOT / path).read_text() else f"{path} does not say '{text}'"


def holds_test(name):
    path, _, function = name.partition("::")
    if not (ROOT / path).exists():
        return f"there is no {path}"
    there = not function or f"def {function}(" in (ROOT / path).read_text()
    return "" if there else f"{path} has no test {function}"


def holds_differs(words):
    return holds_has(words)


@pytest.mark.parametrize(("kind", "what"), list(promises()))
def test_a_promise_is_held(kind, what):
    assert globals()[f"holds_{kind}"](what) == ""


def test_what_a_page_must_say_is_more_than_a_word():
    """A page about clusters holds 'memory' and 'determined' in any case."""
    texts = [
        what.partition(" | ")[2]
        for kind, what in (row.values for row in promises())
        if kind in ("has", "differs")
    ]
    assert [text for text in texts if len(text) < 12] == []


def test_the_table_is_whole():
    rows = list(promises())
    assert len(rows) >= 250
    assert {row.values[0] for row in rows} == {
        *("det", "conf", "py", "launch", "file", "has", "test", "differs"),
    }
