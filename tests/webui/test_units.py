"""The tests beside the sources of the web UI (`webui/src/**/*.test.ts`), run with its own tool."""

import shutil
import subprocess
from pathlib import Path

import pytest

WEBUI = Path(__file__).parents[2] / "webui"
RUNNER = WEBUI / "node_modules" / "vitest" / "vitest.mjs"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.skipif(not RUNNER.exists(), reason="vitest is not installed: make setup")
def test_pure_functions_of_the_web_ui():
    done = subprocess.run(
        [NODE, RUNNER, "run", "--reporter=dot"],
        cwd=WEBUI,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
