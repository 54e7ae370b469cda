"""Which backend Keras computes with, where nothing has said so."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import sys

USUAL = "tensorflow"
"""What Keras takes by itself, and writes into its file at its first import, installed or not."""


def choose() -> None:
    """Choose PyTorch where the backend that Keras would take is not installed.

    What `KERAS_BACKEND` says stays, and so does a Keras that is imported already.
    """
    if "keras" in sys.modules or "KERAS_BACKEND" in os.environ or _is_installed(_of_the_file()):
        return
    if _is_installed("torch"):
        os.environ["KERAS_BACKEND"] = "torch"


def _of_the_file() -> str:
    home = pathlib.Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    try:
        settings = json.loads((home / "keras.json").read_text())
    except (OSError, ValueError):
        return USUAL
    return str(settings.get("backend", USUAL)) if isinstance(settings, dict) else USUAL


def _is_installed(backend: str) -> bool:
    # Backends are called as their packages are.
    return backend.isidentifier() and importlib.util.find_spec(backend) is not None
