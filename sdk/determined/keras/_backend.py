"""Chooses the Keras backend when none is configured."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import sys

USUAL = "tensorflow"
"""Keras' default backend. Keras writes it to its file on first import, even if it is not installed."""


def choose() -> None:
    """Choose PyTorch if the backend that Keras would use is not installed.

    A setting in `KERAS_BACKEND` is respected, and so is a Keras that is already imported.
    """
    if "keras" in sys.modules or "KERAS_BACKEND" in os.environ or _is_installed(_of_the_file()):
        return
    if _is_installed("torch"):
        os.environ["KERAS_BACKEND"] = "torch"


def _of_the_file() -> str:
    # Unlike `Path.expanduser`, this does not fail for a user without a home directory.
    home = pathlib.Path(os.path.expanduser(os.environ.get("KERAS_HOME", "~/.keras")))
    try:
        settings = json.loads((home / "keras.json").read_text())
    except (OSError, ValueError):
        return USUAL
    return str(settings.get("backend", USUAL)) if isinstance(settings, dict) else USUAL


def _is_installed(backend: str) -> bool:
    # Backends have the same names as their packages.
    return backend.isidentifier() and importlib.util.find_spec(backend) is not None
