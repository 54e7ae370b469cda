"""A shell on a cluster: `det shell open` runs what it is given, for who has its key, until it is killed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.local_cluster import wait_for

NEEDED = [name for name in ("ssh", "ssh-keygen") if shutil.which(name) is None]
NEEDED += [] if shutil.which("sshd") or Path("/usr/sbin/sshd").exists() else ["sshd (openssh-server)"]
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(NEEDED), reason=f"this host has no {', '.join(NEEDED)}"),
]


def test_a_shell_runs_what_it_is_given(cluster, tmp_path):
    (tmp_path / "mine.txt").write_text("of mine\n")
    id = cluster.det("shell", "start", "-d", "-c", tmp_path, "--config", "resources.slots=0").stdout.strip()
    words = "cat mine.txt; echo $DET_TASK_TYPE; exit 7"
    done = cluster.det("shell", "open", id, "--", words, check=False)
    assert (done.stdout, done.returncode) == ("of mine\nSHELL\n", 7)
    shown = cluster.get(f"shells/{id}")["shell"]
    assert "PRIVATE KEY" in shown["privateKey"]
    files = [path for path in cluster.home.path.rglob("*") if path.is_file() and "workers" not in path.parts]
    secret = "".join(shown["privateKey"].splitlines()[1:3])[:40].encode()
    assert [path for path in files if secret in path.read_bytes()] == []
    command = cluster.det("shell", "show_ssh_command", id).stdout.strip()
    assert subprocess.run(f"{command} true", shell=True, timeout=60).returncode == 0  # noqa: S602
    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger], check=True)
    tried = f"{command.replace(command.split(' -i ')[1].split()[0], str(stranger))} true"
    assert subprocess.run(tried, shell=True, timeout=60, capture_output=True).returncode == 255  # noqa: S602
    cluster.det("shell", "kill", id)
    wait_for(lambda: cluster.get(f"shells/{id}")["shell"]["state"] == "STATE_TERMINATED", 60, "the end")
