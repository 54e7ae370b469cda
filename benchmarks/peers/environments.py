"""An environment for each peer, made when a benchmark first needs it and kept in `build/peers`.

Versions are those of `requirements/`: what one of these files says anew is installed anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
CACHE = Path(__file__).resolve().parents[2] / "build" / "peers"
PATIENCE_S = 1800.0


class Missing(Exception):
    """A peer cannot be measured here; the text says why, and what to do."""


def interpreter(name: str, install: bool) -> Path:
    """The interpreter of a peer's environment; made first if `install` is true and it is not there.

    Raises `Missing`.
    """
    wanted = (REQUIREMENTS / f"{name}.txt").read_text()
    folder = CACHE / name
    if not _holds(folder, wanted):
        if not install:
            raise Missing("it is not installed; without --quick the benchmark installs it")
        _install(folder, name)
        (folder / "installed.txt").write_text(wanted)
    return folder / "bin" / "python"


def _holds(folder: Path, wanted: str) -> bool:
    installed = folder / "installed.txt"
    return installed.exists() and installed.read_text() == wanted


def _install(folder: Path, name: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = (
        [sys.executable, "-m", "venv", str(folder)],
        [*pip, "--requirement", str(REQUIREMENTS / f"{name}.txt")],
    )
    for step in steps:
        try:
            subprocess.run(step, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
        except subprocess.CalledProcessError as error:
            lines = (error.stderr or error.stdout).strip().splitlines()
            raise Missing(f"it cannot be installed: {lines[-1] if lines else error}") from error
        except subprocess.TimeoutExpired as error:
            raise Missing(f"it is not installed after {PATIENCE_S:.0f} s") from error
