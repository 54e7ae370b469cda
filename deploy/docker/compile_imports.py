"""Compiles, while an image is built, the modules that its programs import: by importing them.

Nobody can write compiled modules later, so everything is compiled that our own modules import. Packages hold
as much again that none of them does, a tenth of the image.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

PACKAGES = ("det_contracts", "determined", "services", "worker")


def main() -> None:
    """Import every module of ours but the programs themselves."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                _import(found.name)


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        # Parts for frameworks that are not installed.
        print(f"{name}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
