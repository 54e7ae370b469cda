from __future__ import annotations

import io
import socketserver
import threading

import pytest

EMPTY = {"experiments": [], "pagination": {"total": 0}}


@pytest.fixture
def answering(tls_gateway, monkeypatch):
    tls_gateway.answer("GET", "/api/v1/experiments", EMPTY)
    monkeypatch.setenv("DET_MASTER", tls_gateway.url)
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_certificate_is_trusted_once_asked(answering, det):
    answering("y\n")
    first = det("e", "list", "--csv")
    assert first.status == 0
    assert "SHA-256 fingerprint" in first.err
    answering("")
    second = det("e", "list", "--csv")
    assert (second.status, second.err) == (0, "")


def test_a_certificate_that_is_not_trusted_ends_the_command(answering, det, tls_gateway):
    answering("n\n")
    result = det("e", "list")
    assert result.status == 1
    assert "is not trusted" in result.err
    assert tls_gateway.calls == []


class Closing(socketserver.BaseRequestHandler):
    """Hears a request to its end and closes, as a gateway that expects TLS does with one in plain HTTP."""

    def handle(self):
        self.request.recv(1 << 16)


def test_a_master_with_tls_that_is_reached_without_says_how(det):
    with socketserver.TCPServer(("127.0.0.1", 0), Closing) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        try:
            result = det("-m", f"127.0.0.1:{server.server_address[1]}", "e", "list")
        finally:
            server.shutdown()
    assert result.status == 1
    assert "if it uses TLS, its address begins with https://" in result.err
