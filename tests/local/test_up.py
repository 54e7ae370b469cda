"""What `cluster-up` does where a cluster of that name runs already, and where it cannot start one."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from services.kit import passwords
from services.kit.broker import held_port, port_of
from services.local import control, logs, preconditions
from services.local.home import Home, Plan
from services.local.preconditions import CannotStart
from tests.fixtures.local_cluster import LocalCluster


@pytest.fixture
def home(tmp_path):
    return Home("test", tmp_path)


def test_each_difference_is_shown_with_what_to_do(home):
    plan = Plan(name="test", port=8080, slots=2)
    home.write_plan(plan)
    preconditions.check_same_options(plan, home, fresh=False)
    with pytest.raises(CannotStart) as refused:
        preconditions.check_same_options(replace(plan, port=9, settings={"A": "1"}), home, fresh=True)
    lines = str(refused.value).splitlines()
    assert lines[1:4] == ["  port: 8080 -> 9", "  settings.A: new", "  data: kept -> deleted"]
    assert all(word in lines[-1] for word in ("--force", "--port", "--master-port", "--cluster-name"))


def test_a_used_port_is_reported_with_the_options_to_choose_another():
    with held_port() as held:
        held.listen()
        plan = Plan(name="test", port=port_of(held))
        with pytest.raises(CannotStart, match=r"--port \(det: --master-port\)"):
            preconditions.check_port(plan)


class Stopped(Exception):
    """The running cluster was stopped, which comes after every check."""


def test_a_running_cluster_that_is_opened_to_others_does_not_hinder_itself_by_its_port(home, monkeypatch):
    def stop(home, **options):
        raise Stopped

    monkeypatch.setattr(control, "down", stop)
    with held_port() as held:
        held.listen()
        plan = Plan(name="test", host="127.0.0.1", port=port_of(held))
        home.write_plan(plan)
        with pytest.raises(Stopped):
            control.up(replace(plan, host="0.0.0.0"), home, force=True, password="x")  # noqa: S104
        with held_port() as other:
            other.listen()
            with pytest.raises(CannotStart, match="cannot be used"):
                control.up(replace(plan, port=port_of(other)), home, force=True)


def test_without_disk_space_the_sizes_are_reported(small_disk):
    disk = small_disk(70)
    home = Home("test", disk.path)
    preconditions.check_space(home)
    disk.fill(leave=1 << 20)
    with pytest.raises(CannotStart, match=r"1 MiB are free at .*, 64 MiB are needed"):
        preconditions.check_space(home)
    with pytest.raises(CannotStart, match="not enough disk space"), held_port() as held:
        control.up(Plan(name="test", port=port_of(held)), home)


def test_the_last_lines_of_a_log(tmp_path):
    (tmp_path / "searcher.log").write_text("".join(f"{number}\n" for number in range(9)))
    assert logs.last_lines(tmp_path / "searcher.log") == ["4", "5", "6", "7", "8"]
    assert logs.last_lines(tmp_path / "none.log") == []


@pytest.mark.full
@pytest.mark.live
def test_a_cluster_that_runs_is_left_alone_unless_it_is_to_be_replaced(tmp_path):
    cluster = LocalCluster(tmp_path, agents=0).up()
    try:
        before = cluster.pid("supervisor")
        assert control.up(cluster.plan, cluster.home) == cluster.address
        assert cluster.pid("supervisor") == before
        other = replace(cluster.plan, slots=7)
        with pytest.raises(CannotStart, match="slots: 2 -> 7"):
            control.up(other, cluster.home)
        refusal = cli(cluster, tmp_path, "up", "--port", "1", "--agents", "0", "--slots", "7")
        assert refusal.returncode == 1
        assert f"port: {cluster.plan.port} -> 1" in refusal.stderr
        assert (cluster.pid("supervisor"), cluster.home.plan()) == (before, cluster.plan)
        with held_port() as held:
            held.listen()
            with pytest.raises(CannotStart, match="cannot be used"):
                control.up(replace(other, port=port_of(held)), cluster.home, force=True)
        with pytest.raises(CannotStart, match="have no password yet"):
            control.up(replace(other, host=EVERYWHERE), cluster.home, force=True, fresh=True)
        # What was refused has changed nothing.
        assert (cluster.pid("supervisor"), cluster.home.plan()) == (before, cluster.plan)
        assert requests.get(f"{cluster.address}/info", timeout=60).ok
        control.up(other, cluster.home, force=True)
        assert cluster.pid("supervisor") != before
        assert cluster.home.plan() == other
    finally:
        cluster.down()


def cli(cluster, folder, *words):
    return subprocess.run(
        [sys.executable, "-P", "-m", "services.local", *words, "--name", cluster.home.name],
        env=os.environ | {"STEADFAST_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


EVERYWHERE = "0.0.0.0"  # noqa: S104


def test_a_new_cluster_that_others_reach_needs_a_password(home):
    plan = Plan(name="test", host=EVERYWHERE)
    with pytest.raises(CannotStart) as refused:
        preconditions.check_password(plan, home, "")
    words = ("'admin' and 'determined'", EVERYWHERE, "STEADFAST_INITIAL_PASSWORD", "--initial-user-password")
    assert all(word in str(refused.value) for word in words)
    preconditions.check_password(plan, home, "secret")
    preconditions.check_password(replace(plan, host="127.0.0.1"), home, "")
    preconditions.check_password(replace(plan, settings={"STEADFAST_INITIAL_PASSWORD": "x"}), home, "")


def test_of_the_first_password_a_hash_is_kept(home):
    assert home.initial_password_file() is None
    home.store_initial_password("secret")
    path = home.initial_password_file()
    assert path.stat().st_mode & 0o077 == 0
    assert passwords.matches(passwords.client_hash("secret"), passwords.from_setting(path.read_text()))


@pytest.mark.full
@pytest.mark.live
@pytest.mark.expected_log(r"settings\.refused|first_password\.missing", "others reach it without a password")
def test_a_cluster_is_opened_to_others_with_a_password_only(tmp_path, monkeypatch):
    cluster = LocalCluster(tmp_path, agents=0).up()
    try:
        assert status_of_login(cluster, "") == 200
        cluster.down()
        opened = replace(cluster.plan, host=EVERYWHERE)
        with pytest.raises(CannotStart, match="STEADFAST_INITIAL_PASSWORD"):
            control.up(opened, cluster.home)
        monkeypatch.setenv("STEADFAST_INITIAL_PASSWORD", "first")
        words = ["--port", str(opened.port), "--agents", "0", "--host", EVERYWHERE]
        done = cli(cluster, tmp_path, "up", *words, "--set", "STEADFAST_LOG_FORMAT=json")
        assert done.returncode == 0, done.stderr
        assert status_of_login(cluster, "") == 401
        assert status_of_login(cluster, "first") == 200
        for name in ("supervisor", "gateway", "searcher"):
            environment = Path(f"/proc/{cluster.pid(name)}/environ").read_bytes()
            assert b"STEADFAST_INITIAL_PASSWORD=" not in environment
    finally:
        cluster.down()


def status_of_login(cluster, password):
    login = {"username": "admin", "password": passwords.client_hash(password), "isHashed": True}
    return requests.post(f"{cluster.address}/api/v1/auth/login", json=login, timeout=60).status_code
