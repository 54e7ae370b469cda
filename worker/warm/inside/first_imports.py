"""Finds what a script imports when it begins, from its text, for a template made before any run has ended.

The text is parsed in a process of its own, of which nothing stays in the template.
"""

from __future__ import annotations

import _ast
import importlib.util
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any, NoReturn

MAX_FILES = 50
MAX_FILE_BYTES = 2**18
MAX_NAMES = 1000
LOADED_LATER = {
    "torch.optim": ("torch._dynamo",),
    "determined": (
        "determined.core._tensorboard_auto",
        "determined.transport.bus",
        "nkeys",
        "nacl.signing",
    ),
}
"""What a package loads when something of it is first used, and takes as long as the package itself.

Of `determined`, it is the connection to the cluster. Without it, the first template would be replaced by a
second one as soon as a run had reported what it lacked.
"""


def find(script: Mapping[str, Any] | None, without: Collection[str]) -> list[str]:
    """What the main program imports, in its order: `module`, or `module:name` for a name imported from one.

    `script` has the `folder` in which it starts, `main`, `is_module` and `arguments`. What cannot be told is
    left out, and so are the packages in `without`.
    """
    if script is None:
        return []
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _print_names(script, write)
    os.close(write)
    with open(read, "rb") as names:
        imported = names.read().decode().split("\n")
    os.waitpid(pid, 0)
    return [name for name in imported if name and re.split("[.:]", name)[0] not in without]


def _print_names(script: Mapping[str, Any], write: int) -> NoReturn:
    try:
        text = "\n".join(Reader(script["folder"]).names_of(script))
        with open(write, "w") as out:
            out.write(text)
    finally:
        os._exit(0)


class Reader:
    """Follows the imports of a main program through its own code."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._own = folder
        """Where it finds its own modules."""
        self._files: set[str] = set()
        self._names: dict[str, None] = {}

    def names_of(self, script: Mapping[str, Any]) -> list[str]:
        """The names that are imported."""
        words = [*(["-m"] if script["is_module"] else []), script["main"], *script["arguments"]]
        for before, word in zip(["", *words], words, strict=False):
            self._read_word(word, is_module=before == "-m")
        used = [name.replace(":", ".") + "." for name in self._names]
        later = [
            module
            for name, modules in LOADED_LATER.items()
            if any(n.startswith(f"{name}.") for n in used)
            for module in modules
        ]
        return [*list(self._names)[:MAX_NAMES], *later]

    def _read_word(self, word: str, *, is_module: bool) -> None:
        """Read the code that a word of the command line names: a launcher starts or imports some."""
        if word.endswith(".py"):
            path = os.path.join(self._folder, word)
            self._own = os.path.dirname(os.path.realpath(path))
            self._read(path, "")
            return
        name, colon, _ = word.partition(":")
        if (is_module or colon) and all(map(str.isidentifier, name.split("."))):
            is_own = self._read_own(f"{name}.__main__" if is_module else name)
            if is_module and not is_own:
                self._read_installed(name)

    def _read_installed(self, name: str) -> None:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            self._read(spec.origin, name.rpartition(".")[0])

    def _read_own(self, name: str) -> bool:
        """Read a module of the code, and the packages above it. Returns whether it is one."""
        parts = name.split(".")
        top = os.path.join(self._own, parts[0])
        if not os.path.isdir(top) and not os.path.isfile(f"{top}.py"):
            return False
        for count in range(1, len(parts) + 1):
            path = os.path.join(self._own, *parts[:count])
            self._read(os.path.join(path, "__init__.py"), ".".join(parts[:count]))
            self._read(f"{path}.py", ".".join(parts[: count - 1]))
        return True

    def _read(self, path: str, package: str) -> None:
        if path in self._files or len(self._files) >= MAX_FILES or not os.path.isfile(path):
            return
        self._files.add(path)
        with open(path, "rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            return
        code: Any = compile(text, path, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        for statement in _run_at_once(code.body):
            for name in _imported(statement, package):
                if name not in self._names and not self._read_own(name.replace(":", ".")):
                    self._names[name] = None
        for used in LOADED_LATER:
            if used.encode() in text and used.partition(".")[0] in self._names:
                self._names[used] = None


def _run_at_once(body: Sequence[_ast.stmt]) -> Iterator[_ast.stmt]:
    """The statements that run when a file is imported, without those that depend on something."""
    for statement in body:
        yield statement
        match statement:
            case _ast.With() | _ast.Try():
                yield from _run_at_once(statement.body)
            case _ast.If(test=_ast.Compare(left=_ast.Name(id="__name__"))):
                yield from _run_at_once(statement.body)
            case _:
                continue


def _imported(statement: _ast.stmt, package: str) -> Iterator[str]:
    """What a statement imports."""
    match statement:
        case _ast.Import():
            yield from (alias.name for alias in statement.names)
        case _ast.ImportFrom() if package or not statement.level:
            above = package.split(".")[: -(statement.level - 1) or None] if statement.level else []
            module = ".".join([*above, *([statement.module] if statement.module else [])])
            yield module
            yield from (f"{module}:{alias.name}" for alias in statement.names if alias.name != "*")
        case _:
            return
