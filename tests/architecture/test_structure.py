"""The rules of the house, read off the source: who imports whom, what the pure cores may touch, sizes."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for top in ("contracts/det_contracts", "sdk/determined", "services", "worker")
    for path in (ROOT / top).rglob("*.py")
    if "migrations" not in path.parts
)
OWN = {"det_contracts", "determined", "services", "worker"}
PURE = re.compile(
    r"contracts/det_contracts/|services/\w+/domain|services/\w+/(react|verdict|passes|retention|values|summary)\.py"
    r"|services/searcher/methods/|services/scheduler/policy/|services/gateway/why/(?!reader)"
)
IMPURE_MODULES = {
    "sqlalchemy", "nats", "fastapi", "structlog", "requests", "socket", "subprocess", "threading", "asyncio",
    "time", "random", "secrets", "os", "tempfile", "uvicorn", "minio",
}  # fmt: skip
IMPURE_CALLS = {"open", "uuid4", "now", "utcnow", "urandom"}
MOST_PUBLIC_METHODS = 12
LARGE_CLASSES = {
    "BusTransport": "implements a protocol whose methods are those of the Core API's contexts",
    "PyTorchCallback": "its methods are the moments of training, which users' callbacks are written against",
    "PyTorchTrialContext": "its methods are those that users' trials call",
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def imported(path):
    """Every module that a file imports, at any depth of it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def part_of(module):
    """`services.searcher.react` -> `services.searcher`; `det_contracts.ids` -> `det_contracts`."""
    words = module.split(".")
    return ".".join(words[:2]) if words[0] == "services" else words[0]


def allowed(path):
    """Own packages that a file may import."""
    words = path.relative_to(ROOT).parts
    match words[0]:
        case "contracts":
            return {"det_contracts"}
        case "sdk":
            return {"det_contracts", "determined"}
        case "worker":
            return {"det_contracts", "services.kit", "worker"}
        case _ if len(words) == 2:
            return {"det_contracts"}
        case _ if words[1] == "kit":
            return {"det_contracts", "services.kit"}
        case _:
            return {"det_contracts", "services.kit", f"services.{words[1]}"}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_who_imports_whom(path):
    found = {part_of(module) for module in imported(path) if module.split(".")[0] in OWN}
    assert found <= allowed(path)


def test_contracts_need_msgspec_and_the_standard_library_alone():
    for path in (p for p in SOURCES if "contracts" in p.parts):
        others = {m.split(".")[0] for m in imported(path)} - set(sys.stdlib_module_names) - OWN
        assert others <= {"msgspec"}, name_of(path)


@pytest.mark.parametrize("path", [p for p in SOURCES if PURE.match(name_of(p))], ids=name_of)
def test_pure_cores_touch_nothing(path):
    tree = ast.parse(path.read_text())
    tops = {module.split(".")[0] for module in imported(path)}
    if path.name == "random.py":
        tops.discard("random")
    assert not tops & IMPURE_MODULES
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {
        f.id if isinstance(f, ast.Name) else f.attr for f in called if isinstance(f, ast.Name | ast.Attribute)
    }
    assert not names & IMPURE_CALLS


def length(node):
    """Lines of a function without its docstring."""
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno - first.lineno + 1) if documented else 0
    return node.end_lineno - node.lineno + 1 - docstring


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_sizes(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert length(node) <= 80, node.name
        if isinstance(node, ast.ClassDef) and node.name not in LARGE_CLASSES:
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
            public = [m.name for m in methods if not m.name.startswith("_")]
            assert len(public) <= MOST_PUBLIC_METHODS, f"{node.name}: {public}"


def test_determined_comes_light():
    heavy = ["torch", "nats", "minio", "requests", "numpy", "yaml", "pathspec", "rich", "boto3", "zmq"]
    script = f"import sys, determined; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_project_text_speaks_of_the_project_alone():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    words = ("/".join(("", "work", "")), "farm" + "-bench", "farm" + "-studio")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".yaml", ".txt") and path.exists():
            text = path.read_text(errors="replace")
            assert not [word for word in words if word in text], name
