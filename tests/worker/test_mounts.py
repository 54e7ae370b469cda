"""Runs that see their files where containers would have them."""

import shutil
import subprocess

import pytest

from worker import mounts


def may_mount():
    if not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="mount namespaces need unshare and the right to use it")
def test_each_run_sees_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "INFO", tmp_path / "at" / "info")
    monkeypatch.setattr(mounts, "SHARED_FS", tmp_path / "at" / "shared_fs")
    received = []
    for name in ("one", "other"):
        info, store = tmp_path / name / "info", tmp_path / name / "store"
        info.mkdir(parents=True)
        (info / "who").write_text(name)
        script = f'cat {mounts.INFO}/who; echo "$1" > {mounts.SHARED_FS}/kept; exit 7'
        argv = mounts.wrap_with_mounts(
            ["sh", "-c", script, "sh", "a  word"], info, {"type": "shared_fs", "host_path": str(store)}
        )
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 7, done.stderr
        assert (store / "kept").read_text() == "a  word\n"
        received.append(done.stdout)
    assert received == ["one", "other"]
    assert list(mounts.INFO.iterdir()) == []


def test_other_storage_is_mounted_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr(mounts, "INFO", tmp_path / "at")
    argv = mounts.wrap_with_mounts(["python3", "x.py"], tmp_path, {"type": "s3", "bucket": "b"})
    assert argv[-3:] == ["--", "python3", "x.py"]
    assert str(mounts.SHARED_FS) not in argv


def test_a_mount_point_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(mounts, "INFO", tmp_path / "file" / "info")
    with pytest.raises(mounts.CannotMount, match="STEADFAST_WORKER_CONTAINER_PATHS=false"):
        mounts.wrap_with_mounts(["true"], tmp_path, {})
