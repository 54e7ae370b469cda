"""Processes of the platform that a benchmark starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def start_module(
    module: str, *words: object, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[Any]:
    """Run `python -m MODULE WORDS...`; the options are those of `subprocess.Popen`."""
    return subprocess.Popen([sys.executable, "-m", module, *map(str, words)], env=env, **options)
