"""Which backend Keras computes with, where nothing has said so."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import sys


def choose() -> None:
    """Choose PyTorch where TensorFlow, which Keras would take, is not installed.

    What `KERAS_BACKEND` or `~/.keras/keras.json` says stays, and so does a Keras that is imported already.
    """
    home = pathlib.Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    if "keras" in sys.modules or "KERAS_BACKEND" in os.environ or (home / "keras.json").exists():
        return
    if importlib.util.find_spec("tensorflow") is None and importlib.util.find_spec("torch") is not None:
        os.environ["KERAS_BACKEND"] = "torch"
