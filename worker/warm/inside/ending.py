"""At the end of a script's process: ends what the script made, and leaves alone what its template had loaded.

An interpreter that ends empties every module and frees what was in them. In a fork of a template this copies
nearly all the memory that the fork shares with it, only to free it: half of what a short script costs. So
when the interpreter begins to do so, the modules that the script made are ended as the interpreter would:
dropped, collected as garbage, and emptied. If nothing is left then whose end may be seen from outside, such
as a file, the process exits. Otherwise the interpreter goes on as after a cold start (`docs/decisions/0074`).

Objects that were frozen before the fork are never collected as garbage, nor is what only they refer to. So if
something that matters is left, they are unfrozen.

Libraries made with nanobind, such as Triton, report each object of theirs that the interpreter has not freed
as leaked. What is withheld is no leak, so their report is suppressed.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import os
import sys
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Module: type = type(sys)
Function: Any = type(lambda: None)
Generator: Any = type(_ for _ in ())
NEVER = {"sys", "builtins"}
"""Modules that the interpreter ends in its own way."""
HARMLESS = {"msgspec", "_cffi_backend"}
"""Compiled packages of the SDK, which keep what they have learned about types. It is only memory."""
WRITING = {"sqlite3", "_dbm", "_gdbm"}
"""Compiled modules of the standard library whose objects write to files when they are freed."""
HEAP_TYPE = 1 << 9
"""The flag of types made while the program runs, as all classes are that are written in Python."""
EXIT_FUNCTIONS = 32
"""How many functions `Py_AtExit` takes."""
NO_ATEXIT = 0x00080000
"""An option of `OPENSSL_init_crypto`."""
_immortal: dict[str, Any] = {}
_immortal["itself"] = _immortal
"""Once frozen, this cycle and all that it refers to are never freed."""
_libc, _interpreter = ctypes.PyDLL(None), ctypes.PyDLL(None)
_does_nothing = ctypes.cast(_libc.getpid, ctypes.c_void_p)
_at_exit, _exit = _interpreter.Py_AtExit, _libc.exit
_succeeded: list[bool] = []
"""Not empty once the main program has returned."""


def watchful() -> list[object]:
    """Objects that do something when they are freed."""
    return [item for item in gc.get_objects() if hasattr(type(item), "__del__")]


def spare_openssl() -> None:
    """Have OpenSSL not free its memory at exit, which would copy it first. Call it before OpenSSL is used."""
    spec = importlib.util.find_spec("_hashlib")
    try:
        openssl = ctypes.CDLL(spec.origin if spec is not None else None)
        openssl.OPENSSL_init_crypto(ctypes.c_uint64(NO_ATEXIT), None)
    except (OSError, AttributeError):
        # An interpreter without OpenSSL, or with one that cannot.
        return


def install(earlier: list[object]) -> None:
    """Have the forks of this process end in this way. Call it after everything is loaded, before `gc.freeze`.

    `earlier` are watchful objects from before anything was loaded. Of the others, generators are closed at
    the end of a fork, and some would do nothing then. If there are any more, forks end as any process.
    """
    hook = getattr(sys, "__interactivehook__", None)
    if not isinstance(hook, Function):
        return
    before = set(map(id, earlier))
    loaded = [item for item in watchful() if id(item) not in before]
    reports_leaks = any(type(item).__module__ == "nanobind" for item in gc.get_objects())
    # The interpreter drops this function, which only a prompt calls, after it has called all functions of
    # `atexit`, when no other thread can run any more, and before it drops modules. A copy, because its module
    # refers to it, too.
    copy = Function(hook.__code__, hook.__globals__, hook.__name__, hook.__defaults__, hook.__closure__)
    vars(copy)["ending"] = _Ending(loaded, reports_leaks)
    sys.__interactivehook__ = copy


def keep(*objects: object) -> None:
    """Have the forks of this process never free these objects: that would copy them first."""
    _immortal["kept"] = objects
    gc.freeze()


def own_main() -> None:
    """In a fork: replace the main program's module, which is frozen, by one that is collected."""
    main = Module("__main__")
    vars(main).update(vars(sys.modules["__main__"]))
    if "__annotations__" in vars(main):
        vars(main)["__annotations__"] = {}
    sys.modules["__main__"] = main


def main_returned() -> None:
    """In a fork: the main program has returned, so that the process exits with status 0."""
    _succeeded.append(True)


class _Ending:
    """Freed when the interpreter begins to take itself apart."""

    def __init__(self, loaded: list[Any], reports_leaks: bool) -> None:
        """Takes the watchful objects that the template has loaded."""
        self._generators = [item for item in loaded if type(item) is Generator]
        self._others = [item for item in loaded if type(item) is not Generator]
        self._reports_leaks = reports_leaks
        self._modules = {name: module for name, module in sys.modules.items() if name not in NEVER}
        _immortal[str(id(self))] = self._modules, self._generators, self._others

    def __del__(self) -> None:
        if not sys.is_finalizing():
            return
        # The interpreter has flushed these, and exits with status 120 if that failed.
        own_streams = sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__
        if not self._may_be_fast() or gc.get_debug() or gc.garbage or _end_own_modules():
            for held_objects in (self._modules, self._generators, self._others):
                held_objects.clear()
            gc.unfreeze()
            if self._reports_leaks:
                # What the interpreter still frees may write there.
                vars(sys)["steadfast_ending"] = _Mute()
            return
        for generator in self._generators:
            # As when the interpreter frees it.
            generator.__del__()
        if _succeeded and not own_streams and not _has_exit_functions():
            _flush_and_exit()
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        if self._reports_leaks:
            _Mute()

    def _may_be_fast(self) -> bool:
        """Whether nothing that the template had loaded has to end, besides generators."""
        return not any(g.gi_running for g in self._generators) and all(map(_does_nothing_now, self._others))


class _Mute:
    """Once freed, discards what libraries still write to the standard error stream."""

    def __init__(self) -> None:
        self._stream, self._silent = sys.stderr, os.open(os.devnull, os.O_WRONLY)
        self._dup2 = os.dup2

    def __del__(self) -> None:
        try:
            self._stream.flush()
        finally:
            self._dup2(self._silent, 2)


def _end_own_modules() -> bool:
    """End the modules of this process as the interpreter does. Returns whether what is left matters."""
    for name in ("stdin", "stdout", "stderr"):
        vars(sys)[name] = vars(sys).get(f"__{name}__")
    # The interpreter's collections do not call these any more.
    gc.callbacks.clear()
    # What was frozen is not among these.
    made = [module for module in gc.get_objects() if issubclass(type(module), Module)]
    names, left = _names(made), [weakref.ref(module) for module in made]
    made.clear()
    for name in names:
        sys.modules[name] = None  # type: ignore[assignment]
    gc.collect()
    remaining = [module for ref in reversed(left) if (module := ref()) is not None]
    _close_generators(remaining)
    _empty(remaining)
    return _something_matters()


def _close_generators(modules: list[Any]) -> None:
    """Close generators that modules hold, such as that of a context that was entered for good.

    A cold interpreter collects these modules as garbage, and closes their generators first. Here the template
    may refer to them, so that they are emptied, and a generator's last lines would miss what they use.
    """
    for module in modules:
        for value in list(vars(module).values()):
            is_context = issubclass(type(value), contextlib.ContextDecorator)
            generator: Any = getattr(value, "__dict__", {}).get("gen") if is_context else value
            if type(generator) is Generator and not generator.gi_running:
                # As when the interpreter frees it: what it raises is printed as "Exception ignored in".
                generator.__del__()


def _names(modules: list[Any]) -> list[str]:
    """Under which names they are in `sys.modules`, in its order, but the main program's first."""
    wanted = {vars(module).get("__name__"): module for module in modules}
    wanted = {name: module for name, module in wanted.items() if sys.modules.get(name) is module}
    names = ["__main__"] if wanted.pop("__main__", None) else []
    newest, reversed_names = reversed(sys.modules), []
    # Not all of them: to look at a name copies it into this process.
    while wanted:
        name = next(newest)
        if wanted.pop(name, None) is not None:
            reversed_names.append(name)
    return [*names, *reversed(reversed_names)]


def _does_nothing_now(item: Any) -> bool:
    """Whether a watchful object would do nothing if it were freed now."""
    if type(item).__module__ == "_io":
        return bool(item.closed)
    # That of multiprocessing, and joblib's, stop the process that they have started, if any.
    finalizer_module = str(getattr(type(item).__del__, "__module__", ""))
    is_tracker = finalizer_module.rpartition(".")[2].endswith("resource_tracker")
    return is_tracker and vars(item).get("_fd", 0) is None


def _something_matters() -> bool:
    """Whether something of the script is left whose end may be seen from outside of its process."""
    try:
        return any(_may_matter(item) for item in gc.get_objects() if type(item) is not _Ending)
    except Exception:
        # A class may compute its attributes, and fail.
        return True


def _may_matter(item: Any) -> bool:
    kind: Any = type(item)
    if hasattr(kind, "__del__"):
        return not _does_nothing_now(item)
    # A type of a compiled library may do anything when it is freed.
    top = str(kind.__module__).partition(".")[0]
    if top in WRITING:
        return True
    return not kind.__flags__ & HEAP_TYPE and top not in sys.stdlib_module_names and top not in HARMLESS


def _empty(modules: list[Any]) -> None:
    """Empty modules as the interpreter does: private names first."""
    for module in modules:
        names = vars(module)
        for private in (True, False):
            for name in list(names):
                if name != "__builtins__" and (name[:1] == "_" and name[1:2] != "_") is private:
                    names[name] = None


def _has_exit_functions() -> bool:
    """Whether a library gave a function to `Py_AtExit`. Fills its table."""
    free = 0
    while free <= EXIT_FUNCTIONS and _at_exit(_does_nothing) == 0:
        free += 1
    return free != EXIT_FUNCTIONS


def _flush_and_exit() -> None:
    """Exit with status 0. Returns if a stream cannot be written, which the interpreter then reports."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except Exception:
        return
    # This calls what libraries gave to C's `atexit`.
    _exit(0)
