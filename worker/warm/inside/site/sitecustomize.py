"""Imported only by the interpreter of a template, which has this folder first on its path.

It leaves no trace except a replacement for `runpy`, from which the interpreter requests its main program.
"""

import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _forget_this_folder() -> None:
    here = os.path.dirname(__file__)
    sys.path[:] = [folder for folder in sys.path if folder != here]
    sys.path_importer_cache.pop(here, None)
    rest = os.environ.pop("PYTHONPATH").partition(os.pathsep)[2]
    if rest:
        os.environ["PYTHONPATH"] = rest


def _import_own_sitecustomize() -> None:
    ours = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        # Code that imports this file looks for it here; it is removed before the main program begins.
        sys.modules["sitecustomize"] = ours


def _replace_runpy() -> None:
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 4))
    before = set(sys.modules)
    sys.path.insert(0, root)
    from worker.warm.inside.template_process import MainProgram

    sys.path.remove(root)
    platform = ("worker", "services")
    own = [name for name in sys.modules if name not in before and name.partition(".")[0] in platform]
    # Scripts may have modules with these names.
    platform_modules = {name: sys.modules.pop(name) for name in own}
    control, order = map(int, os.environ.pop("STEADFAST_TEMPLATE").split(","))
    real = sys.modules.get("runpy")
    replacement: dict[str, Any] = {"runpy": MainProgram(control, order, root, platform_modules, real)}
    sys.modules.update(replacement)


_forget_this_folder()
_import_own_sitecustomize()
_replace_runpy()
