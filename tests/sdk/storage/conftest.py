import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from determined.storage import S3StorageManager, SharedFSStorageManager
from services.kit.broker import held_port, port_of

KEY, SECRET, BUCKET = "AKEY", "SKEY", "checkpoints"


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="session")
def s3_root(tmp_path_factory):
    """Where the S3 server keeps its objects."""
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="session")
def s3_url(s3_root):
    """A real S3 server with one bucket, keeping its objects as files."""
    program = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    if program is None:
        pytest.skip("rclone is not installed")
    (s3_root / BUCKET).mkdir()
    with held_port() as held:
        yield from _served(program, s3_root, port_of(held))


def _served(program, root, port):
    server = subprocess.Popen(
        [program, "serve", "s3", str(root), "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}",
         "--config", str(root.parent / "no-rclone.conf")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 20
        while not _answers(port):
            assert server.poll() is None
            assert time.monotonic() < deadline, "the S3 server does not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.live)])
def storage(request, tmp_path):
    """Every storage in turn, empty."""
    if request.param == "directory":
        return SharedFSStorageManager(tmp_path / "storage")
    url = request.getfixturevalue("s3_url")
    return S3StorageManager(BUCKET, KEY, SECRET, url, f"prefix/{tmp_path.parent.name}/{tmp_path.name}")
