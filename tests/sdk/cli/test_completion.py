"""`det completion`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ([], ["experiment", "trial", "--master"]),
        (["e"], ["list", "create", "set", "--help"]),
        (["-m", "host", "experiment", "set"], ["gc-policy", "max-slots"]),
        (["e", "create"], ["--config", "--test-mode", "--follow-first-trial"]),
        (["c", "download", "--mode", "direct"], ["--output-dir", "--quiet"]),
        (["completion"], ["bash", "zsh", "fish"]),
    ],
)
def test_what_may_follow(det, words, some):
    done = det("completion", "words", "--", *words)
    assert done.status == 0
    assert set(some) <= set(done.out.split())


def test_nothing_follows_an_unknown_word(det):
    assert det("completion", "words", "nonsense", "x").out.split() == []


def test_bash(monkeypatch, det, tmp_path):
    if shutil.which("bash") is None or not (BIN / "det").exists():
        pytest.skip("needs bash and an installed det")
    (tmp_path / "rc").write_text(det("completion", "bash").out)
    typed = 'COMP_WORDS=(det e set m); COMP_CWORD=3; _det; echo "${COMPREPLY[@]}"'
    script = f"PATH={BIN}:$PATH; source {tmp_path}/rc; {typed}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "max-slots\n"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(det, shell):
    done = det("completion", shell)
    assert (done.status, "det completion words" in done.out) == (0, True)
