"""Measures of the source: sizes of files and functions, documentation, repetition, import circles.

    python -m tests.architecture.measures

Prints the table of CONTRIBUTING.md. `test_structure.py` holds the limits.
"""

import ast
import functools
import graphlib
import statistics
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SHIPPED = ("contracts/det_contracts", "sdk/determined", "services", "worker")
FOLDERS = (*SHIPPED, "benchmarks", "tests")
RUN = 6
"""Number of equal lines in a row that count as repeated."""


class Function(NamedTuple):
    name: str
    lines: int
    """Without the docstring."""
    is_public: bool
    docstring: str


class Module(NamedTuple):
    path: Path
    lines: int
    functions: tuple[Function, ...]
    imports: frozenset[str]
    """Names that the module imports when it is loaded; functions and type checking excluded."""


def files(folder):
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "migrations" not in path.parts)


@functools.lru_cache(maxsize=1)
def nodes_of(path):
    """The nodes of a file, its module first. Only the last file's are kept: all would take a gigabyte."""
    return list(ast.walk(ast.parse(path.read_text())))


@functools.cache
def module(path):
    nodes = nodes_of(path)
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Module(
        path,
        len(path.read_text().splitlines()),
        tuple(function(node) for node in functions),
        frozenset(loaded(nodes[0].body, path)),
    )


def function(node):
    name, docstring = node.name, ast.get_docstring(node) or ""
    return Function(name, length(node), not name.startswith("_"), docstring)


def length(node):
    """Lines of a function without its docstring."""
    docstring = docstring_of(node)
    return node.end_lineno - node.lineno + 1 - (len(lines_of(docstring)) if docstring else 0)


def docstring_of(node):
    first = node.body[0] if node.body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first if is_text and isinstance(first.value.value, str) else None


def lines_of(node):
    return range(node.lineno, node.end_lineno + 1)


def comments(path):
    """Number of comments in a file."""
    with path.open() as source:
        return sum(token.type == tokenize.COMMENT for token in tokenize.generate_tokens(source.readline))


def code_lines(path):
    """Lines without indentation, blank lines, comments, docstrings and imports."""
    text, left_out = path.read_text(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            left_out.update(lines_of(node))
    for number, line in enumerate(text.splitlines(), 1):
        if number not in left_out and line.strip() and not line.strip().startswith("#"):
            yield line.strip()


def loaded(statements, path):
    """The names that the statements of a module import while it is loaded."""
    for node in statements:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom():
                source = absolute(node, path)
                yield from (f"{source}.{alias.name}" for alias in node.names)
            case ast.Try():
                yield from loaded(node.body, path)
                yield from loaded([s for handler in node.handlers for s in handler.body], path)
            case ast.If() if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from loaded(node.body + node.orelse, path)


def absolute(node, path):
    if not node.level:
        return node.module
    package = dotted(path).split(".") if path.name == "__init__.py" else dotted(path).split(".")[:-1]
    above = package[: len(package) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def dotted(path):
    """`sdk/determined/core/__init__.py` -> `determined.core`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] in ("contracts", "sdk") else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def import_circle(modules):
    """The modules of one circle of imports, or none."""
    names = {dotted(each.path) for each in modules}
    graph = {}
    for each in modules:
        targets = {nearest(name, names) for name in each.imports}
        graph[dotted(each.path)] = targets - {None, dotted(each.path)}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def nearest(name, names):
    """The module that an imported name is, or is in."""
    above = name.rpartition(".")[0]
    return name if name in names else above if above in names else None


def repeated_share(paths):
    """Share of code lines in runs of at least `RUN` lines that occur more than once."""
    places, total = defaultdict(list), 0
    for path in paths:
        code = tuple(code_lines(path))
        total += len(code)
        for start in range(len(code) - RUN + 1):
            places[code[start : start + RUN]].append((path, start))
    copies = [place for occurrences in places.values() if len(occurrences) > 1 for place in occurrences]
    return len({(path, start + offset) for path, start in copies for offset in range(RUN)}) / total


def percentile_90(values):
    return statistics.quantiles(values, n=10, method="inclusive")[8]


def row(folder):
    paths = files(folder)
    modules = [module(path) for path in paths]
    functions = [each for source in modules for each in source.functions]
    lengths = [each.lines for each in functions]
    sizes = [each.lines for each in modules]
    documented = [each for each in functions if each.is_public and each.docstring]
    return [
        f"`{folder}`",
        f"{len(modules)}",
        f"{sum(sizes):,}",
        spread(sizes),
        f"{len(functions):,}",
        spread(lengths),
        f"{len(documented):,}, {sum('```' in each.docstring for each in documented)}",
        f"{sum(comments(path) for path in paths) / sum(sizes):.1%}",
        f"{repeated_share(paths):.1%}",
        "yes" if import_circle(modules) else "no",
    ]


def spread(values):
    return f"{statistics.median(values):.0f} / {percentile_90(values):.0f} / {max(values)}"


HEADINGS = (
    "folder",
    "files",
    "lines",
    "lines per file",
    "functions",
    "lines per function",
    "public docstrings, with example",
    "comments",
    "repeated",
    "import circles",
)


def main():
    print("|", " | ".join(HEADINGS), "|")
    print("|---" * len(HEADINGS) + "|")
    for folder in FOLDERS:
        print("|", " | ".join(row(folder)), "|")


if __name__ == "__main__":
    main()
