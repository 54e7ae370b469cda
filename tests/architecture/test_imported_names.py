"""What the project's files import from one another is there.

The type checker does not read tests, and CI's tier does not collect what is in `tests/full`: a name that was
moved would be noticed there only when the long tier runs.
"""

import ast
import functools
import re

import pytest

from tests.architecture.measures import ROOT, files

PLACES = {
    name: ROOT / where
    for name, where in {
        "benchmarks": "",
        "det_contracts": "contracts",
        "determined": "sdk",
        "docs": "",
        "services": "",
        "tests": "",
        "worker": "",
    }.items()
}
"""Each package of the project and the folder that it lies in."""


def source_of(module):
    """The file of a module; nothing for packages of others and for folders without an `__init__.py`."""
    path = PLACES[module.split(".")[0]] / module.replace(".", "/")
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((each for each in candidates if each.is_file()), None)


@functools.cache
def names_in(path):
    """The names that a file gives at its top, in any branch; `None` where only running it would tell."""
    names = set()
    pending = list(ast.parse(path.read_text()).body)
    while pending:
        match pending.pop():
            case ast.FunctionDef(name="__getattr__") | ast.ImportFrom(names=[ast.alias(name="*")]):
                return None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case node:
                pending += ast.iter_child_nodes(node)
    return names


IMPORT = re.compile(
    rf"^[ \t]*(?:import|from) (?:{'|'.join(PLACES)})\b(?:[^(\n]*\([^)]*\)|[^(\n]*$)", re.MULTILINE
)
"""An import of the project's own packages; a whole file is parsed only for what is imported from it."""


def missing(text):
    """What a source imports from the project's own packages that is not there."""
    for statement in IMPORT.findall(text):
        (node,) = ast.parse(statement.strip()).body
        if isinstance(node, ast.Import):
            wanted = [(alias.name, None) for alias in node.names if alias.name.split(".")[0] in PLACES]
        else:
            wanted = [(node.module, alias.name) for alias in node.names]
        for module, name in wanted:
            if not is_there(module, name):
                yield f"{module}.{name}" if name else module


def is_there(module, name):
    source = source_of(module)
    folder = PLACES[module.split(".")[0]] / module.replace(".", "/")
    if name is None or name == "*":
        return source is not None or folder.is_dir()
    if folder.is_dir() and ((folder / name).is_dir() or (folder / f"{name}.py").is_file()):
        return True
    if source is None:
        return False
    available = names_in(source)
    return available is None or name in available


def test_what_files_import_is_there():
    missing_names = {
        path.relative_to(ROOT).as_posix(): names
        for folder in ("tests", "benchmarks", "docs", "examples")
        for path in files(folder)
        if (names := list(missing(path.read_text())))
    }
    assert missing_names == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from services.kit.broker import no_such_name", ["services.kit.broker.no_such_name"]),
        ("from services.no_such_room import x", ["services.no_such_room.x"]),
        ("import tests.fixtures.no_such_file", ["tests.fixtures.no_such_file"]),
        ("def late():\n    from tests.fixtures import no_such_file", ["tests.fixtures.no_such_file"]),
        ("from services.kit.broker import held_port\nimport json\nfrom torch import anything", []),
        ("from tests.fixtures import ports", []),
    ],
)
def test_what_is_not_there_is_found(text, expected):
    assert list(missing(text)) == expected
