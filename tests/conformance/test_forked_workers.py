"""The processes of `pytest -n` are forked from one that has collected the tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.fork_server import ForkServer
from tests.fixtures.forked_workers import MAIN

SETTINGS = "[pytest]\naddopts = --import-mode=importlib --disable-plugin-autoload\n"
MODULE = """
import colorsys

def test_sum():
    found = [1]
    assert found == [2], "said"
"""
AGAIN = """
import sys
import pytest
assert "colorsys" in sys.modules
sys.exit(pytest.main(["-q", sys.argv[1], sys.argv[2]]))
"""


def own_temporary_folder(tmp_path):
    """Without this option, a pytest removes at its end what earlier runs of its user have left: gigabytes."""
    return f"--basetemp={tmp_path / 'of the inner run'}"


@pytest.fixture
def start(tmp_path):
    """A function that starts a server that has collected one module, and runs the program in a fork of it."""
    servers = []

    def run(module):
        (tmp_path / "test_one.py").write_text(module)
        (tmp_path / "pytest.ini").write_text(SETTINGS)
        servers.append(ForkServer([str(tmp_path)], main=MAIN))
        servers[0].wait_until_ready()
        words = ["-c", AGAIN, str(tmp_path / "test_one.py"), own_temporary_folder(tmp_path)]
        with servers[0].start(words, stdout=subprocess.PIPE, text=True) as process:
            output, _ = process.communicate(timeout=60)
            return process.wait(), output

    yield run
    for server in servers:
        server.close()


def test_a_fork_finds_the_modules_imported_and_their_assertions_rewritten(start):
    code, output = start(MODULE)
    assert code == 1
    assert "At index 0 diff: 1 != 2" in output
    assert output.count("1 failed") == 1


@pytest.mark.parametrize(
    ("module", "message"),
    [
        pytest.param("1 / 0", "ZeroDivisionError", id="cannot be imported"),
        pytest.param(
            "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
            "starts threads where it is imported",
            id="starts a thread",
        ),
    ],
)
def test_modules_that_forks_would_not_have_whole_are_refused(start, capfd, module, message):
    with pytest.raises(RuntimeError, match="the fork server has ended"):
        start(module)
    assert message in capfd.readouterr().err


def test_where_none_can_be_forked_each_process_is_started(tmp_path):
    (tmp_path / "test_one.py").write_text(
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "def test_it(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    plugins = ["-p", "xdist", "-p", "tests.fixtures.forked_workers"]
    words = ["-q", "-n", "1", *plugins, own_temporary_folder(tmp_path), str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert "each process imports the tests for itself" in done.stderr
