"""At the end of a script's process: ends what the script made, and leaves alone what its template had loaded.

An interpreter that ends empties every module and frees what was in them. In a fork of a template this copies
nearly all the memory that the fork shares with it, only to free it: half of what a short script costs. So the
template's modules are withheld from the interpreter, unless something that the script made lives on in them
whose end matters, such as a file: what was written to it may reach the disk only when the last reference
goes. Everything else ends as after a cold start: threads, `atexit`, standard streams, the script's own
modules and what they held (`docs/decisions/0070`).

Objects that were frozen before the fork are never collected as garbage, nor is what only they refer to. So if
something that matters is still there when all modules are empty, they are unfrozen.

Libraries made with nanobind, such as Triton, report each object of theirs that the interpreter has not freed
as leaked. What is withheld is no leak, so their report is suppressed.
"""

from __future__ import annotations

import gc
import os
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

Module: type = type(sys)
Function: Any = type(lambda: None)
NEVER = {"sys", "builtins", "__main__"}
"""Never withheld: the interpreter ends the first two in its own way, and the last one is the script's."""
HARMLESS = {"msgspec", "_cffi_backend"}
"""Compiled packages of the SDK, which keep what they have learned about types. It is only memory."""
HEAP_TYPE = 1 << 9
"""The flag of types made while the program runs, as all classes are that are written in Python."""
_objects, _unfreeze, _collect = gc.get_objects, gc.unfreeze, gc.collect
_open, _dup2, _NOWHERE, _WRITE = os.open, os.dup2, os.devnull, os.O_WRONLY
"""Found here also when all modules are empty."""
_immortal: dict[str, Any] = {}
_immortal["itself"] = _immortal
"""Once frozen, this cycle and all that it refers to are never freed."""


def watchful() -> list[object]:
    """Objects that do something when they are freed."""
    return [one for one in _objects() if hasattr(type(one), "__del__")]


def install(known: list[object]) -> None:
    """Have the forks of this process end in this way. Call it after everything is loaded, before `gc.freeze`.

    `known` are watchful objects from before anything was loaded. If there are others, nothing is
    withheld for good.
    """
    hook = getattr(sys, "__interactivehook__", None)
    if not isinstance(hook, Function):
        return
    before = set(map(id, known))
    fast = all(id(one) in before for one in watchful())
    reports_leaks = any(type(one).__module__ == "nanobind" for one in _objects())
    # The interpreter drops this function, which only a prompt calls, after it has called all functions of
    # `atexit`, when no other thread can run any more, and before it drops modules. A copy, because its module
    # refers to it, too.
    copy = Function(hook.__code__, hook.__globals__, hook.__name__, hook.__defaults__, hook.__closure__)
    vars(copy)["ending"] = _Beginning(fast, reports_leaks)
    sys.__interactivehook__ = copy


def own_main() -> None:
    """In a fork: replace the main program's module, which is frozen, by one that is collected."""
    main = Module("__main__")
    vars(main).update(vars(sys.modules["__main__"]))
    if "__annotations__" in vars(main):
        vars(main)["__annotations__"] = {}
    sys.modules["__main__"] = main


class _Beginning:
    """Freed when the interpreter begins to take itself apart: withholds the template's modules."""

    def __init__(self, fast: bool, reports_leaks: bool) -> None:
        self._fast = fast
        self._reports_leaks = reports_leaks
        self._modules = sys.modules
        self._kept = {name: module for name, module in sys.modules.items() if name not in NEVER}
        self._late = Module("steadfast_ending")
        _immortal[str(id(self))] = self._kept, self._late

    def __del__(self) -> None:
        if not sys.is_finalizing():
            return
        for name, module in self._kept.items():
            if self._modules.get(name) is module:
                del self._modules[name]
        own = [weakref.ref(one) for one in self._modules.values() if issubclass(type(one), Module)]
        # The interpreter drops all modules, collects garbage, and empties modules that are still there, the
        # newest first: this one.
        self._modules[self._late.__name__] = self._late
        vars(self._late)["end"] = _Late(self._fast, self._reports_leaks, self._kept, own)


class _Late:
    """Freed after the script's modules, and after the garbage that they were."""

    def __init__(
        self, fast: bool, reports_leaks: bool, kept: dict[str, Any], own: list[weakref.ref[Any]]
    ) -> None:
        self._fast = fast
        self._reports_leaks = reports_leaks
        self._kept = kept
        self._own = own

    def __del__(self) -> None:
        if not self._fast or _something_matters():
            self._free_all()
        if self._reports_leaks:
            _mute_standard_error()

    def _free_all(self) -> None:
        """Empty the template's modules, and if that does not suffice, collect also what was frozen."""
        left = [weakref.ref(one) for one in self._kept.values() if issubclass(type(one), Module)] + self._own
        self._kept.clear()
        _empty(module for ref in reversed(left) if (module := ref()) is not None)
        if _something_matters():
            _unfreeze()
            _collect()


def _mute_standard_error() -> None:
    """Discard what libraries still write there. All code of the script has run."""
    try:
        sys.stderr.flush()
    finally:
        _dup2(_open(_NOWHERE, _WRITE), 2)


def _something_matters() -> bool:
    """Whether something of the script is left whose end may be seen from outside of its process."""
    try:
        return any(_may_matter(one) for one in _objects() if type(one) is not _Late)
    except Exception:
        # A class may compute its attributes, and fail.
        return True


def _may_matter(one: Any) -> bool:
    kind: Any = type(one)
    if hasattr(kind, "__del__"):
        return kind.__module__ != "_io" or not one.closed
    # A type of a compiled library may do anything when it is freed.
    top = str(kind.__module__).partition(".")[0]
    return not kind.__flags__ & HEAP_TYPE and top not in sys.stdlib_module_names and top not in HARMLESS


def _empty(modules: Iterable[Any]) -> None:
    """Empty modules as the interpreter does: private names first."""
    for module in modules:
        names = vars(module)
        if names.get("__name__") in NEVER:
            continue
        for private in (True, False):
            for name in list(names):
                if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is private:
                    names[name] = None
