"""Who tasks run as, and what of the worker's environment they are left with."""

import os
import pwd
from pathlib import Path

import pytest

from det_contracts.events.gateway import AgentUser
from tests.fixtures.other_users import needs_root
from worker import account, app
from worker.account import Account, Accounts, BadAccount
from worker.user_folders import UserFolders, chown_tree


def test_a_setting_names_a_user_with_or_without_a_group():
    nobody = pwd.getpwnam("nobody")
    assert account.parse_account("nobody").uid == nobody.pw_uid
    assert account.parse_account("nobody:12").gid == 12
    assert account.parse_account("12345:67") == Account(12345, 67, "uid-12345")


@pytest.mark.parametrize("text", ["no-such-user", "nobody:no-such-group", "4294967000", "root", "0:5", "5:0"])
def test_a_setting_that_means_nobody_or_root(text):
    with pytest.raises(BadAccount, match=r"UID:GID|root's \(0\)"):
        account.parse_account(text)


def test_a_linked_user_is_never_root():
    assert account.linked_account(AgentUser(7, 8, "ann", "staff")).uid == 7
    for uid, gid in ((0, 5), (5, 0), (-1, 5), (2**32 - 1, 5), (5, 2**40)):
        with pytest.raises(BadAccount, match="link-with-agent-user"):
            account.linked_account(AgentUser(uid, gid, "ann", "staff"))


def test_the_owners_account_goes_before_the_setting(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    chosen = Accounts("12345:67")
    assert chosen.choose(None).uid == 12345
    assert chosen.choose(AgentUser(7, 8, "ann", "staff")).uid == 7
    assert Accounts("").choose(None) is None
    assert "can read the keys" in Accounts("").warning
    assert not chosen.warning


def test_a_worker_that_is_not_root_cannot_choose(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BadAccount, match="runs as root"):
        Accounts("nobody")
    assert Accounts("").choose(AgentUser(7, 8, "ann", "staff")) is None


def test_a_worker_refuses_to_start_with_a_user_that_is_not_there(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("STEADFAST_WORKER_HOME", str(tmp_path))
    monkeypatch.setenv("STEADFAST_WORKER_RUN_AS", "no-such-user")
    with pytest.raises(SystemExit, match="2"):
        app.main()
    assert "no user 'no-such-user'" in capsys.readouterr().err


def test_another_user_gets_neither_secrets_nor_what_is_personal():
    inherited = {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "HOME": "/root",
        "USER": "root",
        "SSH_AUTH_SOCK": "/tmp/agent",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "MINIO_ROOT_PASSWORD": "x",
        "PGPASSWORD": "x",
        "HF_TOKEN": "x",
        "OMP_NUM_THREADS": "2",
    }
    variables = account.variables(Account(5, 6, "ann"), inherited, Path("/p"))
    assert variables == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "2",
        "HOME": "/p/workdir",
        "USER": "ann",
        "LOGNAME": "ann",
        "TMPDIR": "/p/tmp",
    }
    assert "TMPDIR" not in account.variables(Account(5, 6, "ann"), {}, Path("/p" * 50))


@needs_root
def test_a_folder_that_others_can_swap_is_refused(tmp_path):
    root = tmp_path / "tasks"
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(OSError, match="STEADFAST_WORKER_TASKS"):
        UserFolders(root, "w").make("1")
    root.chmod(0o755)
    os.chown(root, 5, 5)
    with pytest.raises(OSError, match="STEADFAST_WORKER_TASKS"):
        UserFolders(root, "w").make("1")


@needs_root
def test_a_folder_is_its_users_alone_and_goes_without_following_links(tmp_path):
    root, outside = tmp_path / "tasks", tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "kept").write_text("")
    places = UserFolders(root, "worker-1234567890")
    place = places.make("7.r.1")
    (place / "link").symlink_to(outside)
    (place / "workdir" / "deep").mkdir(parents=True)
    chown_tree(place, Account(5, 6, "ann"))
    assert {path.lstat().st_uid for path in (place, *place.rglob("*"))} == {5}
    assert outside.stat().st_uid == 0
    assert place.stat().st_mode & 0o777 == 0o700
    places.make("7.r.2")
    places.set_aside_all_except({"7.r.2"})
    places.remove_set_aside()
    assert [path.name for path in places.folder.iterdir()] == ["7.r.2"]
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o755
