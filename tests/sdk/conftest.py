"""Fixtures that folders of the SDK share: a gateway to talk to, a folder to train in."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import pytest

from tests.sdk.fake_gateway import FakeGateway


@pytest.fixture
def gateway():
    served = FakeGateway()
    yield served
    served.close()


@pytest.fixture
def client_home(tmp_path, monkeypatch):
    """An empty directory for the client's files, no DET_ variables, retries without pauses."""
    for name in ("MASTER", "MASTER_ADDR", "USER", "PASS", "USER_TOKEN", "SESSION_TOKEN", "DEBUG"):
        monkeypatch.delenv(f"DET_{name}", raising=False)
    home = tmp_path / "client-home"
    monkeypatch.setenv("DET_DEBUG_CONFIG_PATH", str(home))
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 5, "backoff_factor": 0}')
    return home


@pytest.fixture
def tls_gateway(gateway, tmp_path, client_home):
    """A gateway behind TLS, with a certificate for `127.0.0.1` and `cluster.test` that nobody vouches for."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", "subjectAltName=DNS:cluster.test,IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    gateway.wrap_socket(context)
    return gateway


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A test's own folder: what it trains keeps checkpoints there, and finds its code in an empty one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)
    return tmp_path
