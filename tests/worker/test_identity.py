"""Who a worker is, by its folder."""

import os
import subprocess
import sys

import msgspec
import pytest

from tests.fixtures.other_users import BOB, needs_root
from worker import identity
from worker.identity import Identity, IdentityError, claim

HOLD = """
import sys, pathlib
from worker.identity import IdentityError, claim
try:
    print(claim(pathlib.Path(sys.argv[1]), sys.argv[2]).instance, flush=True)
except IdentityError as error:
    sys.exit(str(error))
sys.stdin.read()
"""


class Claims:
    """Processes that claim folders until they are killed, as workers do."""

    def __init__(self):
        self._running = []

    def start(self, home, wanted="w"):
        command = [sys.executable, "-c", HOLD, str(home), wanted]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(command, text=True, **pipes)
        self._running.append(process)
        return process, process.stdout.readline().strip()

    def end(self):
        for process in self._running:
            process.kill()
            process.communicate()


@pytest.fixture
def claims():
    made = Claims()
    yield made
    made.end()


def test_a_folder_says_who_it_is_and_a_new_one_is_somebody_else(tmp_path, claims):
    first, instance = claims.start(tmp_path / "home")
    first.kill()
    first.wait()
    assert claims.start(tmp_path / "home")[1] == instance
    assert claims.start(tmp_path / "other")[1] not in ("", instance)


def test_two_workers_cannot_have_one_folder(tmp_path, claims):
    first, _ = claims.start(tmp_path)
    second, instance = claims.start(tmp_path)
    assert instance == ""
    output = second.stderr.read()
    assert f"a worker runs in the folder {tmp_path} already (process {first.pid})" in output
    assert "STEADFAST_WORKER_HOME" in output


def test_the_folder_of_another_worker_is_refused(tmp_path, claims):
    claims.start(tmp_path, "a")[0].kill()
    for process in claims._running:
        process.wait()
    output = claims.start(tmp_path, "b")[0].stderr.read()
    assert f"the folder {tmp_path} belongs to worker 'a', not to 'b'" in output


@pytest.fixture
def unlocked(monkeypatch):
    """A lock is held for as long as its process lives: here several claims follow one another in one."""
    monkeypatch.setattr(identity, "_lock", lambda home: None)


def test_without_an_id_a_worker_is_called_after_its_host_and_keeps_the_name(tmp_path, unlocked, monkeypatch):
    monkeypatch.setattr(identity.socket, "gethostname", lambda: "4f.9a_c")
    first = claim(tmp_path, "")
    assert (first.worker_id, first.host) == ("4f-9a_c", "4f.9a_c")
    # As a container that is made anew over the folder of the one before.
    monkeypatch.setattr(identity.socket, "gethostname", lambda: "another")
    again = claim(tmp_path, "")
    assert (again.worker_id, again.instance, again.host) == ("4f-9a_c", first.instance, "another")


@needs_root
@pytest.mark.parametrize("planted", ["folder", "link"])
def test_a_folder_that_somebody_else_made_where_everybody_may_is_refused(tmp_path, unlocked, planted):
    """On a shared machine, the path of a worker's folder in /tmp is known before the worker is there."""
    shared, own = tmp_path / "shared", tmp_path / "own"
    own.mkdir()
    shared.mkdir()
    shared.chmod(0o1777)
    path = shared / "steadfast-ann"
    if planted == "folder":
        path.mkdir()
    else:
        path.symlink_to(own)
    os.chown(path, BOB, BOB, follow_symlinks=False)
    with pytest.raises(IdentityError, match=f"{path} was made by user {BOB}"):
        claim(path / "w1", "w1")
    assert claim(shared / "another" / "w1", "w1").worker_id == "w1"


def test_an_id_must_be_a_token(tmp_path):
    with pytest.raises(IdentityError, match="STEADFAST_WORKER_ID='a b'"):
        claim(tmp_path, "a b")


def test_a_damaged_file_says_what_to_do(tmp_path, unlocked):
    (tmp_path / identity.FILE).write_text("{")
    with pytest.raises(IdentityError, match=r"identity\.json is damaged"):
        claim(tmp_path, "w")


def test_only_its_owner_reads_the_folder(tmp_path, unlocked):
    claim(tmp_path / "home", "w")
    assert os.stat(tmp_path / "home").st_mode & 0o777 == 0o700
    stored_identity = msgspec.json.decode((tmp_path / "home" / identity.FILE).read_bytes(), type=Identity)
    assert stored_identity.worker_id == "w"
