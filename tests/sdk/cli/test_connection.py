from __future__ import annotations

import io

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
