from __future__ import annotations

import json
from pathlib import Path

import pytest

from determined.common.api import errors
from determined.transport import certificates
from determined.transport.rest import Session

URL = "https://h:443"


def test_trust_is_kept_by_master(client_home):
    assert certificates.verification(URL) is True
    certificates.trust(URL, "PEM OF H")
    assert json.loads((client_home / "certs.json").read_text()) == {URL: "PEM OF H"}
    with open(str(certificates.verification(URL))) as file:
        assert file.read() == "PEM OF H"
    assert certificates.verification("https://other:443") is True


def test_the_environment_overrides(client_home, monkeypatch, tmp_path):
    certificates.trust(URL, "PEM OF H")
    monkeypatch.setenv("DET_MASTER_CERT_FILE", "noverify")
    assert certificates.verification(URL) is False
    (tmp_path / "cert.pem").touch()
    monkeypatch.setenv("DET_MASTER_CERT_FILE", str(tmp_path / "cert.pem"))
    assert certificates.verification(URL) == str(tmp_path / "cert.pem")


def test_a_missing_file_of_the_environment_is_named_and_passed_over(client_home, monkeypatch, caplog):
    monkeypatch.setenv("DET_MASTER_CERT_FILE", "/not/there.pem")
    assert certificates.verification(URL) is True
    assert "/not/there.pem, which does not exist" in caplog.text
    certificates.trust(URL, "PEM OF H")
    assert Path(str(certificates.verification(URL))).read_text() == "PEM OF H"


def test_the_old_file_is_taken_over_once(client_home):
    client_home.mkdir()
    (client_home / "master.crt").write_text("OLD PEM")
    with open(str(certificates.verification(URL))) as file:
        assert file.read() == "OLD PEM"
    assert not (client_home / "master.crt").exists()
    assert json.loads((client_home / "certs.json").read_text()) == {URL: "OLD PEM"}


def test_an_unknown_certificate_is_refused_until_trusted(tls_gateway):
    with Session(tls_gateway.url) as session, pytest.raises(errors.UntrustedCertificate, match="not trusted"):
        session.get("/info")
    pem, fingerprint = certificates.presented(tls_gateway.url)
    assert len(fingerprint.split(":")) == 32
    certificates.trust(tls_gateway.url, pem)
    with Session(tls_gateway.url) as session:
        assert session.get("/info")["version"] == "0.25.0"


@pytest.mark.parametrize(("name", "fits"), [("cluster.test", True), ("other.test", False)])
def test_the_name_in_the_certificate_can_be_another(tls_gateway, monkeypatch, name, fits):
    certificates.trust(tls_gateway.url, certificates.presented(tls_gateway.url)[0])
    monkeypatch.setenv("DET_MASTER_CERT_NAME", name)
    with Session(tls_gateway.url) as session:
        if fits:
            assert session.get("/info")["version"] == "0.25.0"
        else:
            with pytest.raises(errors.UntrustedCertificate, match="not trusted"):
                session.get("/info")


def test_no_verification_on_request(tls_gateway, monkeypatch):
    monkeypatch.setenv("DET_MASTER_CERT_FILE", "noverify")
    with Session(tls_gateway.url) as session:
        assert session.get("/info")["version"] == "0.25.0"
