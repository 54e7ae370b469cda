"""Whoever has the keys of a cluster can let a user sign in again, without anybody who could sign in."""

import os
import uuid

import pytest

from services.kit.passwords import client_hash
from tests.fixtures.service_processes import run_module

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def user(cluster):
    """A user of this test's own, and their id."""
    name = f"forgetful-{uuid.uuid4().hex[:8]}"
    made = cluster.api("POST", "users", user="admin", json={"user": {"username": name}, "password": "lost"})
    return name, made["user"]["id"]


def login(cluster, name, password):
    body = {"username": name, "password": client_hash(password), "isHashed": True}
    return cluster._session.post(f"{cluster.address}/api/v1/auth/login", json=body, timeout=60)


def reset(cluster, *words):
    here = {**os.environ, "STEADFAST_HOME": str(cluster.home.path.parents[1])}
    return run_module("services.local", "reset-password", "--name", cluster.home.name, *words, env=here)


def test_a_user_gets_a_new_password_with_the_keys_of_the_cluster(cluster, user, tmp_path):
    name, id = user
    cluster.api("PATCH", f"users/{id}", user="admin", json={"active": False})
    assert login(cluster, name, "lost").status_code != 200
    file = tmp_path / "password"
    file.write_text("found again\n")
    done = reset(cluster, name, "--password-file", file, "--admin")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"user '{name}' can sign in with the new password\n"
    answer = login(cluster, name, "found again")
    assert (answer.status_code, answer.json()["user"]["admin"]) == (200, True)
    assert login(cluster, name, "lost").status_code == 401


def test_who_is_not_there_is_named_and_nothing_changes(cluster, user, tmp_path):
    name, _ = user
    file = tmp_path / "password"
    file.write_text("new")
    done = reset(cluster, "nobody-of-this-name", "--password-file", file)
    assert done.returncode == 1
    assert "nobody-of-this-name" in done.stderr
    for empty, words in (("", "the new password is empty"), (None, "cannot be read")):
        file.unlink() if empty is None else file.write_text(empty)
        done = reset(cluster, name, "--password-file", file)
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
    assert login(cluster, name, "lost").status_code == 200
