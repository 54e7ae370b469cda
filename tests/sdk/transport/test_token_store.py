from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest

from determined._home import NoHomeDirectory
from determined.common.api.errors import CorruptTokenCacheException
from determined.core._storage_choice import user_data_directory
from determined.experimental._download import _may_reach
from determined.transport import token_store
from determined.transport.token_store import TokenStore
from tests.fixtures.without_account import lose_account

A, B = "http://a:8080", "http://b:8080"


def test_tokens_are_kept_by_master_and_user(tmp_path):
    TokenStore(A, tmp_path).save("ann", "1", activate=True)
    TokenStore(A, tmp_path).save("bob", "2")
    TokenStore(B, tmp_path).save("eve", "3", activate=True)
    store = TokenStore(A, tmp_path)
    assert (store.active_user(), store.users()) == ("ann", ["ann", "bob"])
    assert (store.token("bob"), store.token("eve")) == ("2", None)
    assert TokenStore(B, tmp_path).active_user() == "eve"
    content = json.loads((tmp_path / "auth.json").read_text())
    assert content == {
        "version": 1,
        "masters": {
            A: {"active_user": "ann", "tokens": {"ann": "1", "bob": "2"}},
            B: {"active_user": "eve", "tokens": {"eve": "3"}},
        },
    }


def test_dropping_a_token_may_end_being_active(tmp_path):
    store = TokenStore(A, tmp_path)
    store.save("ann", "1", activate=True)
    store.drop("ann")
    assert (store.active_user(), store.token("ann")) == ("ann", None)
    store.drop("ann", deactivate=True)
    assert store.active_user() is None


def test_only_the_owner_can_read(tmp_path):
    home = tmp_path / "new" / "determined"
    TokenStore(A, home).save("ann", "1")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "auth.json").stat().st_mode) == 0o600
    assert sorted(path.name for path in home.iterdir()) == ["auth.json", "auth.json.lock"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "not json",
        "[]",
        '{"version": 7, "masters": {}}',
        '{"version": 1}',
        '{"version": 1, "masters": {"x": 3}}',
        '{"version": 1, "masters": {"x": {"tokens": {"u": 4}}}}',
    ],
)
def test_a_damaged_file_is_removed_and_reported(tmp_path, content):
    (tmp_path / "auth.json").write_text(content)
    with pytest.raises(CorruptTokenCacheException, match="Attempted to read a corrupted token cache"):
        TokenStore(A, tmp_path).token("ann")
    assert not (tmp_path / "auth.json").exists()
    assert TokenStore(A, tmp_path).token("ann") is None


def test_version_0_is_taken_for_the_present_master(tmp_path):
    (tmp_path / "auth.json").write_text('{"active_user": "ann", "tokens": {"ann": "1"}}')
    store = TokenStore(A, tmp_path)
    assert (store.active_user(), store.token("ann")) == ("ann", "1")
    store.save("bob", "2")
    assert json.loads((tmp_path / "auth.json").read_text())["version"] == 1
    assert store.users() == ["ann", "bob"]


_WRITER = """
import sys
from pathlib import Path
from determined.transport.token_store import TokenStore
for number in range(25):
    TokenStore("http://a:8080", Path(sys.argv[1])).save(f"{sys.argv[2]}{number}", "t")
"""


def test_processes_at_once_lose_nothing(tmp_path):
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), name]) for name in "xyz"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(TokenStore(A, tmp_path).users()) == 75


def test_the_directory_of_client_files(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DET_DEBUG_CONFIG_PATH", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert token_store.config_dir() == tmp_path / "determined"
    monkeypatch.setenv("DET_DEBUG_CONFIG_PATH", str(tmp_path / "other"))
    assert token_store.config_dir() == tmp_path / "other"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch, tmp_path):
    lose_account(monkeypatch)
    for name in [name for name in os.environ if name.startswith(("AWS_", "MINIO_", "GOOGLE_", "STORAGE_"))]:
        monkeypatch.delenv(name)
    with pytest.raises(NoHomeDirectory, match="has no home directory on this host: set HOME"):
        token_store.config_dir()
    with pytest.raises(NoHomeDirectory, match="set HOME"):
        user_data_directory()
    assert not _may_reach({"type": "s3"})
    assert not _may_reach({"type": "gcs"})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert token_store.config_dir() == tmp_path / ".config" / "determined"
