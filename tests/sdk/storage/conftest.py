import io
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from determined.storage import (
    AzureStorageManager,
    GCSStorageManager,
    S3StorageManager,
    SharedFSStorageManager,
)
from determined.storage.bucket import Origin
from services.kit.broker import held_port, port_of
from tests.fixtures.azure_server import ACCOUNT_KEY, CONTAINER, azure_server
from tests.fixtures.gcs_server import GCS_BUCKET, gcs_server

KEY, SECRET, BUCKET = "AKEY", "SKEY", "checkpoints"


class Given(io.BytesIO):
    """The body of an answer that a test makes up."""

    def __init__(self, content, origin=None):
        super().__init__(content)
        self.origin = origin or Origin(None, "")


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
    (s3_root / BUCKET).mkdir()
    with held_port() as held:
        yield from _served(s3_root, port_of(held))


@pytest.fixture(scope="session")
def s3_tls(s3_url, s3_root, tmp_path_factory):
    """The same by TLS: gives the URL and whom to trust for it."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = (str(folder / name) for name in ("key.pem", "certificate.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    with held_port() as held:
        for url in _served(s3_root, port_of(held), "--cert", certificate, "--key", key):
            yield url.replace("http:", "https:"), certificate


def _served(root, port, *options):
    program = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
    if program is None:
        pytest.skip("rclone is not installed")
    server = subprocess.Popen(
        [program, "serve", "s3", str(root), "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}",
         "--config", str(root.parent / "no-rclone.conf"), *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert server.poll() is None
            assert time.monotonic() < deadline, "the S3 server does not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture(scope="session")
def gcs():
    """A stand-in for Google's store."""
    with gcs_server() as server:
        yield server


@pytest.fixture(scope="session")
def azure():
    """A stand-in for Azure."""
    with azure_server() as server:
        yield server


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.live), "gcs", "azure"])
def storage(request, tmp_path, monkeypatch):
    """Every storage in turn, empty."""
    if request.param == "directory":
        return SharedFSStorageManager(tmp_path / "storage")
    prefix = f"prefix/{tmp_path.parent.name}/{tmp_path.name}"
    if request.param == "s3":
        return S3StorageManager(BUCKET, KEY, SECRET, request.getfixturevalue("s3_url"), prefix)
    server = request.getfixturevalue(request.param)
    server.objects.clear()
    if request.param == "azure":
        return AzureStorageManager(CONTAINER, account_url=server.url, credential=ACCOUNT_KEY)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    return GCSStorageManager(GCS_BUCKET, prefix)
