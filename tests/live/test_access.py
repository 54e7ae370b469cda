"""API tokens and sessions, with the real command and client on a real cluster."""

import os
import subprocess
import sys

import pytest

from tests.fixtures.local_cluster import DET


def run(cluster, tmp_path, *command, typed=None, **variables):
    environment = {
        "DET_MASTER": cluster.address,
        "DET_DEBUG_CONFIG_PATH": str(tmp_path / "nobody"),
        **variables,
    }
    return subprocess.run(
        command,
        env=os.environ | environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


CLIENT = "from determined.experimental import client; print(client.whoami().username)"


@pytest.mark.timeout(300)
def test_a_token_serves_command_and_client_until_it_is_revoked(cluster, tmp_path):
    token = cluster.det("token", "create", "pipeline").stdout.strip()
    done = run(cluster, tmp_path, str(DET), "user", "whoami", DET_USER_TOKEN=token)
    assert (done.returncode, done.stdout) == (0, "You are logged in as user 'determined'\n"), done.stderr
    done = run(cluster, tmp_path, sys.executable, "-c", CLIENT, DET_USER_TOKEN=token)
    assert (done.returncode, done.stdout) == (0, "determined\n"), done.stderr
    reading = cluster.det("token", "create", "reading", "--read-only").stdout.strip()
    done = run(cluster, tmp_path, str(DET), "template", "remove", "none", DET_USER_TOKEN=reading)
    assert "for reading only" in done.stderr
    cluster.det("token", "revoke", "pipeline")
    cluster.det("token", "revoke", "reading")
    done = run(cluster, tmp_path, str(DET), "e", "list", DET_USER_TOKEN=token)
    assert done.returncode == 1
    assert "was revoked" in done.stderr


def test_a_session_is_ended_from_another_one(cluster, tmp_path):
    det, name = str(DET), "has-two-sessions"
    admin = {"DET_USER": "admin", "DET_PASS": ""}
    made = run(cluster, tmp_path, det, "user", "create", name, typed="pw\npw\n", **admin)
    assert made.returncode == 0, made.stderr
    own = {"DET_USER": name, "DET_PASS": "pw"}
    stores = [tmp_path / "one", tmp_path / "other"]
    for store in stores:
        assert run(cluster, store, det, "e", "list", **own).returncode == 0
    lost = (stores[1] / "nobody" / "auth.json").read_text()
    assert (
        run(cluster, stores[0], det, "user", "revoke-session", "--all", **own).stdout
        == "Revoked 1 sessions\n"
    )
    # It has the password, and so logs in again by itself: with another token.
    assert run(cluster, stores[1], det, "e", "list", **own).returncode == 0
    assert (stores[1] / "nobody" / "auth.json").read_text() != lost
