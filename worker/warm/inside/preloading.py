"""What a template loads, and what it records about that."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

CWD = "\0cwd"
"""Stands for the folder in which a script is started."""


def package_folders() -> tuple[str, ...]:
    """Folders of installed packages: the interpreter's default path without the standard library.

    Includes the folders of packages installed in editable mode, but not those in PYTHONPATH.
    """
    named = set(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    library = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    library |= {os.path.join(path, "lib-dynload") for path in library if path}
    return tuple(p for p in sys.path if p and os.path.isdir(p) and p not in named and p not in library)


def is_within(file: str | None, folders: Sequence[str]) -> bool:
    """Whether a file is below one of the folders."""
    return file is not None and any(file.startswith(folder + os.sep) for folder in folders)


def is_installed_package(name: str, folders: Sequence[str]) -> bool:
    """Whether a name is that of an installed package, or of something within one."""
    top = name.partition(".")[0]
    if top in sys.modules:
        where = getattr(sys.modules[top], "__spec__", None)
    else:
        try:
            where = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            return False
    if where is None:
        return False
    return is_within(where.origin, folders) or any(
        is_within(os.path.join(path, ""), folders) for path in where.submodule_search_locations or ()
    )


def load(name: str) -> None:
    """Import `module`, or a name from a module as `module:name`. What fails here is left to the script."""
    module, _, attribute = name.partition(":")
    try:
        loaded = importlib.import_module(module)
        if attribute and not hasattr(loaded, attribute):
            importlib.import_module(f"{module}.{attribute}")
    except Exception:
        return


def loaded_package_modules(folders: Sequence[str], besides: Collection[str] = frozenset()) -> list[str]:
    """The loaded modules of installed packages, in the order of loading, without some that are known."""
    names = []
    new = []
    for name in reversed(sys.modules):
        if name in besides:
            break
        new.append(name)
    for name in reversed(new):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if name != "__main__" and spec is not None and is_within(getattr(spec, "origin", None), folders):
            names.append(name)
    return names


def changes_by_shell(variables: Mapping[str, str]) -> dict[str, str | None]:
    """The changes that an intermediate shell made to the environment. `CWD` stands for its own folder."""
    own = {"STEADFAST_TEMPLATE", "PYTHONPATH"}
    here = os.getcwd()
    set_variables = {
        name: CWD if value == here and name == "PWD" else value
        for name, value in changes(variables, os.environ).items()
        if name not in own
    }
    return set_variables


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Variables that are new or changed; None for removed ones."""
    changed: dict[str, str | None] = {name: value for name, value in now.items() if before.get(name) != value}
    return changed | dict.fromkeys(name for name in before if name not in now)


class LoadedFiles:
    """The files behind the loaded modules, as they were when loaded."""

    def __init__(self, folders: Sequence[str]) -> None:
        paths = [*folders, sys.executable, os.__file__]
        paths += [os.path.join(f, n) for f in folders for n in os.listdir(f) if n.endswith(".pth")]
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and is_within(file, folders):
                paths.append(file)
        # Few objects: to look at one copies its page into a template, which looks at each start of a run.
        self._paths = b"\0".join(map(os.fsencode, dict.fromkeys(paths)))
        numbers = [number.to_bytes(8, sys.byteorder) for number in _stamps(self._paths)]
        self._stamps = memoryview(b"".join(numbers)).cast("Q")

    def changed(self) -> bool:
        """Whether any of them was written, removed or replaced, or a package was installed or removed."""
        return any(now != before for now, before in zip(_stamps(self._paths), self._stamps, strict=True))


def _stamps(paths: bytes) -> Iterator[int]:
    """Of each file when it was written, how large it is, and which one it is."""
    begin = 0
    while begin <= len(paths):
        end = paths.find(b"\0", begin)
        end = end if end >= 0 else len(paths)
        try:
            status = os.stat(paths[begin:end])
            yield from (status.st_mtime_ns % 2**64, status.st_size, status.st_ino)
        except OSError:
            yield from (0, 0, 0)
        begin = end + 1
