"""The tests beside the sources of the web UI (`webui/src/**/*.test.ts`), run with its own tool."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WEBUI = Path(__file__).parents[2] / "webui"
RUNNER = WEBUI / "node_modules" / "vitest" / "vitest.mjs"
# Setting up takes Node from PyPI where the machine has none.
NODE = shutil.which("node") or shutil.which("node", path=Path(sys.executable).parent)


@pytest.mark.timeout(1000)
@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.skipif(not RUNNER.exists(), reason="vitest is not installed: make setup")
def test_pure_functions_of_the_web_ui():
    done = subprocess.run(
        [NODE, RUNNER, "run", "--reporter=dot"],
        cwd=WEBUI,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
