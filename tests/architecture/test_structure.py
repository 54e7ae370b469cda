"""The rules of the house, read off the source: who imports whom, what the pure cores may touch, sizes."""

import ast
import functools
import re
import statistics
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.architecture.measures import (
    FOLDERS,
    ROOT,
    SHIPPED,
    Module,
    files,
    import_circle,
    module,
    nodes_of,
    percentile_90,
    row,
)
from tests.fixtures.tiers import rest_in_full

SOURCES = [path for folder in SHIPPED for path in files(folder)]
OWN = {"det_contracts", "determined", "services", "worker"}
PURE = re.compile(
    r"contracts/det_contracts/|services/\w+/domain|services/\w+/(react|verdict|passes|retention|values|summary)\.py"
    r"|services/searcher/methods/|services/scheduler/policy/|services/why/(?!reader)"
)
IMPURE_MODULES = {
    "sqlalchemy", "nats", "fastapi", "structlog", "requests", "socket", "subprocess", "threading", "asyncio",
    "time", "random", "secrets", "os", "tempfile", "uvicorn", "minio", "obstore",
}  # fmt: skip
IMPURE_CALLS = {"open", "uuid4", "now", "utcnow", "urandom"}
ROOMS = {
    "services.gateway": {
        "services.catalogue", "services.live", "services.people", "services.rest_requests",
        "services.rest_routes", "services.web",
    },
    "services.rest_routes": {
        "services.catalogue", "services.live", "services.people", "services.rest_requests",
        "services.submission", "services.web", "services.why",
    },
    "services.submission": {
        "services.catalogue", "services.people", "services.rest_requests", "services.web",
    },
    "services.rest_requests": {
        "services.catalogue", "services.live", "services.people", "services.web",
    },
    "services.live": {"services.catalogue", "services.web"},
    "services.catalogue": {"services.people", "services.why"},
}  # fmt: skip
"""Parts that are made of others; these are libraries and no processes."""
VAGUE = {"asked", "found", "given", "kept", "known", "one", "said", "seen", "told", "wish"}
"""Names that say the grammar of a sentence, and not what a variable holds. Underscores do not count."""
SENT_UNDER_THEIR_NAMES = {
    "contracts/det_contracts/events/decision.py",
    "contracts/det_contracts/script_queries.py",
}
"""Their messages have a field `seen`, whose name stands in every log and in the requests of older scripts."""
MOST_LINES = 400
MOST_PUBLIC_METHODS = 12
LARGE_CLASSES = {
    "BusTransport": "implements a protocol whose methods are those of the Core API's contexts",
    "ExperimentConfig": "its methods are those of 0.25, which scripts ask",
    "OutsideTransport": "implements the same protocol",
    "DeepSpeedTrialContext": "its methods are those of 0.25, which users' trials call",
    "PyTorchCallback": "its methods are the moments of training, which users' callbacks are written against",
    "PyTorchTrialContext": "its methods are those that users' trials call",
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


class Facts(NamedTuple):
    """What the rules ask of a file."""

    measured: Module
    imports: frozenset[str]
    """Modules that it imports, at any depth of it."""
    calls: frozenset[str]
    """The last name of everything that it calls."""
    classes: tuple[tuple[str, list[str]], ...]
    """Each class and its public methods."""
    vague_names: tuple[str, ...]


@functools.cache
def facts(path):
    """Each file is read and parsed once for all rules; of the tree no more than the facts is kept."""
    nodes = nodes_of(path)
    classes = [n for n in nodes if isinstance(n, ast.ClassDef)]
    return Facts(
        module(path),
        frozenset(name for node in nodes for name in imported(node)),
        frozenset(called(node.func) for node in nodes if isinstance(node, ast.Call)),
        tuple((node.name, public_methods(node)) for node in classes),
        tuple(vague_names(nodes)),
    )


def imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []


def called(function):
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


NAMED_BY = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
}


def vague_names(nodes):
    """Variables, parameters, functions, fields and attributes with one of the `VAGUE` names."""
    for node in nodes:
        field = NAMED_BY.get(type(node))
        if field is None or isinstance(getattr(node, "ctx", None), ast.Load | ast.Del):
            continue
        name = getattr(node, field)
        if name.strip("_") in VAGUE:
            yield f"{name} in line {node.lineno}"


def public_methods(node):
    methods = [n.name for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name for name in methods if not name.startswith("_")]


def listed(faults):
    """One line for each file and what is wrong with it."""
    return "\n" + "\n".join(f"{name_of(path)}: {what}" for path, what in faults)


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
        case _:
            own = f"services.{words[1]}"
            return {"det_contracts", "services.kit", own, *ROOMS.get(own, ())}


def test_who_imports_whom():
    faults = []
    for path in SOURCES:
        parts = {part_of(name) for name in facts(path).imports if name.split(".")[0] in OWN}
        if not parts <= allowed(path):
            faults.append((path, f"imports {sorted(parts - allowed(path))}"))
    assert not faults, listed(faults)


def test_the_door_holds_rooms_and_no_loose_files():
    folder = ROOT / "services" / "gateway"
    assert {path.name for path in folder.glob("*.py")} == {"__init__.py", "__main__.py", "app.py"}
    # The process alone: what is more than its start and its server is a library (decision 83).
    assert sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py")) < 1_000


def test_contracts_need_msgspec_and_the_standard_library_alone():
    for path in (p for p in SOURCES if "contracts" in p.parts):
        others = {m.split(".")[0] for m in facts(path).imports} - set(sys.stdlib_module_names) - OWN
        assert others <= {"msgspec"}, name_of(path)


def impure(path):
    tops = {name.split(".")[0] for name in facts(path).imports}
    if path.name == "random.py":
        tops.discard("random")
    yield from (f"imports {name}" for name in sorted(tops & IMPURE_MODULES))
    yield from (f"calls {name}" for name in sorted(facts(path).calls & IMPURE_CALLS))


def test_pure_cores_touch_nothing():
    cores = [path for path in SOURCES if PURE.match(name_of(path))]
    assert cores
    faults = [(path, what) for path in cores for what in impure(path)]
    assert not faults, listed(faults)


LEFT_BEHIND = {"wait_for", "Condition", "Semaphore", "BoundedSemaphore"}
"""What a cancellation at the wrong moment breaks.

In Python 3.11 `asyncio.wait_for` swallows one that comes together with what it waits for, and whoever loops
around it never ends; a Condition keeps its lock, a Semaphore its place. `asyncio.timeout` and futures do not.
"""


def test_no_cancellation_leaves_anything_behind():
    mine = [path for path in SOURCES if name_of(path).split("/")[0] in ("services", "worker")]
    faults = [(path, f"calls {name}") for path in mine for name in sorted(facts(path).calls & LEFT_BEHIND)]
    assert not faults, listed(faults)


BELIEVE_A_FEED = {"services/kit/runner.py", "services/intake/relay.py"}
"""They read on for ever, and ask the leader before they rest anything on it."""


def test_a_read_of_the_past_ends_where_the_leader_says():
    """A feed that has caught up may be that of a broker behind the others: `read_between` ends right."""
    sources = {name_of(path) for path in SOURCES if re.search(r"batch\S*\.caught_up", path.read_text())}
    assert sources == BELIEVE_A_FEED


def too_large(path):
    measured = facts(path).measured
    if measured.lines > MOST_LINES:
        yield f"{measured.lines} lines"
    yield from (f"{each.name}: {each.lines} lines" for each in measured.functions if each.lines > 80)
    for name, public in facts(path).classes:
        if name not in LARGE_CLASSES and len(public) > MOST_PUBLIC_METHODS:
            yield f"{name}: {public}"


def test_no_file_function_or_class_is_too_large():
    faults = [(path, what) for path in SOURCES for what in too_large(path)]
    assert not faults, listed(faults)


@pytest.mark.parametrize("folder", [*SHIPPED, "benchmarks", "tests"])
def test_functions_are_short(folder):
    lengths = [each.lines for path in files(folder) for each in facts(path).measured.functions]
    assert statistics.median(lengths) <= 8
    assert percentile_90(lengths) <= 20


def test_no_module_imports_itself_through_others():
    assert import_circle([facts(path).measured for path in SOURCES]) == []


def test_a_circle_of_imports_is_found():
    first, second = module(ROOT / "services/kit/rules.py"), module(ROOT / "services/kit/roots.py")
    there = first._replace(imports=frozenset({"services.kit.roots.Roots"}))
    back = second._replace(imports=frozenset({"services.kit.rules.Key"}))
    assert set(import_circle([there, back])) == {"services.kit.rules", "services.kit.roots"}


def test_the_table_of_measures_is_printed():
    files_of_it, functions, lengths = (row("worker")[column] for column in (1, 4, 5))
    assert int(files_of_it) == len(files("worker"))
    assert int(functions) > 400
    assert re.fullmatch(r"\d+ / \d+ / \d+", lengths)


def test_variables_and_attributes_are_named_for_what_they_hold():
    paths = [
        path for folder in FOLDERS for path in files(folder) if name_of(path) not in SENT_UNDER_THEIR_NAMES
    ]
    faults = [(path, name) for path in paths for name in facts(path).vague_names]
    assert faults == [], listed(faults)


def test_a_vague_name_is_found():
    source = """
class Answer(Struct):
    found: int = 0

def read(self, known, *, kept=None):
    found: list[int] = [one for one in known]
    for told, trial in found:
        trial.said = self.wish = told
    self._kept, self.asked = trial.said, found_in(trial)
"""
    names = sorted(vague_names(ast.walk(ast.parse(source))))
    assert names == [
        "_kept in line 9", "asked in line 9", "found in line 3", "found in line 6", "kept in line 5",
        "known in line 5", "one in line 6", "said in line 8", "told in line 7", "wish in line 8",
    ]  # fmt: skip


PROGRAMS = ["services.gateway", "services.metrics", "worker", "services.searcher", "services.scheduler"]


@pytest.mark.parametrize("program", rest_in_full(PROGRAMS, 3))
def test_programs_load_nothing_that_they_never_use(program):
    """What is loaded stays in memory, once for each of them."""
    never = ["rich.console", "alembic", "aiohttp.client", "torch", "optuna"]
    file = ROOT / program.replace(".", "/") / "__main__.py"
    loads = [line for line in file.read_text().splitlines() if line.startswith(("import ", "from "))]
    script = "\n".join([*loads, "import sys", f"print([m for m in {never!r} if m in sys.modules])"])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_heavy_work_of_the_gateway_comes_light():
    """Each piece may need a process of its own, whose start is what its user waits for."""
    heavy = [
        "fastapi",
        "starlette",
        "sqlalchemy",
        "nats",
        "urllib3",
        "httpx",
        "prometheus_client",
        "rich.console",
    ]
    loads = "import sys, services.kit.offload_child, services.submission.heavy"
    script = f"{loads}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_supervisor_of_a_cluster_comes_light():
    """It starts with each cluster, after a command that loads the same, and stays as long."""
    heavy = ["fastapi", "sqlalchemy", "nats", "prometheus_client", "rich.console"]
    loads = "import sys, services.local.__main__, services.local.supervisor"
    script = f"{loads}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


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


AT_THE_ROOT = """
.ci benchmarks contracts deploy docs examples sdk services tests webui worker
.dockerignore .gitignore ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE Makefile README.md
constraints.txt docker-compose.yaml pyproject.toml
"""


def test_the_root_holds_the_rooms_and_what_tools_look_for_there():
    """A downloaded wheel, or what else a command leaves there, would be committed with the rest."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name.partition("/")[0] for name in listed.stdout.splitlines()} == set(AT_THE_ROOT.split())


FOR_EVERYBODY = re.compile(r'setattr\((\w+\.)*time, |setattr\("[\w.]+\.time\.\w+"')


def test_no_test_changes_time_for_the_whole_process():
    """Event loops and threads of other tests would stand still with it: `set_time` is for one module."""
    faults = [name_of(path) for path in files("tests") if FOR_EVERYBODY.search(path.read_text())]
    assert faults == []
    for arguments in (
        'module.time, "sleep", nap',
        'time, "time", clock',
        '"services.kit.x.time.monotonic", clock',
    ):
        assert FOR_EVERYBODY.search(f"monkeypatch.setattr({arguments})"), arguments
