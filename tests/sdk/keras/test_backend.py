"""Keras runs with what is installed, unless somebody has said otherwise."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")


def chosen(tmp_path, file=None, backend=None):
    """`KERAS_BACKEND` of a fresh process after the choice."""
    if file is not None:
        (tmp_path / "keras.json").write_text(file)
    settings = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    settings |= {"KERAS_HOME": str(tmp_path)} | ({"KERAS_BACKEND": backend} if backend else {})
    # The file alone: the package would bring Keras in.
    path = Path(__file__).parents[3] / "sdk" / "determined" / "keras" / "_backend.py"
    script = (
        f"import os, runpy; runpy.run_path({str(path)!r})['choose'](); print(os.environ.get('KERAS_BACKEND'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=settings, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is not None, reason="TensorFlow is installed")
@pytest.mark.parametrize(
    "file", [None, json.dumps({"backend": "tensorflow"}), json.dumps({"floatx": "float32"}), "{", "[]"]
)
def test_torch_stands_in_for_a_backend_that_is_not_installed(tmp_path, file):
    assert chosen(tmp_path, file) == "torch"


def test_what_somebody_said_stays(tmp_path):
    assert chosen(tmp_path, json.dumps({"backend": "torch"})) == "None"
    assert chosen(tmp_path, backend="numpy") == "numpy"
