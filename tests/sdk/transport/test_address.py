from __future__ import annotations

import pytest

from determined.transport.address import master_url


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("h", "http://h:8080"),
        ("h:1234", "http://h:1234"),
        ("h/pre", "http://h:8080/pre"),
        ("h:99/pre/", "http://h:99/pre"),
        ("http://h", "http://h:80"),
        ("https://h", "https://h:443"),
        ("https://h:8443/a/b", "https://h:8443/a/b"),
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("[::1]:9000", "http://[::1]:9000"),
    ],
)
def test_addresses_become_urls(address, url):
    assert master_url(address) == url


@pytest.mark.parametrize("address", ["ftp://h", "http://", "h:port", "h:99999", "h:8080x"])
def test_what_is_no_address(address):
    with pytest.raises(ValueError, match="is not a master address"):
        master_url(address)


def test_the_environment_is_asked_in_order(monkeypatch):
    monkeypatch.delenv("DET_MASTER", raising=False)
    monkeypatch.delenv("DET_MASTER_ADDR", raising=False)
    assert master_url() == "http://localhost:8080"
    monkeypatch.setenv("DET_MASTER_ADDR", "addr")
    assert master_url() == "http://addr:8080"
    monkeypatch.setenv("DET_MASTER", "master:1")
    assert master_url() == "http://master:1"
    assert master_url("given") == "http://given:8080"


@pytest.mark.parametrize("address", [8080, b"h", object(), 1.5])
def test_an_address_that_is_no_text_is_refused(address):
    with pytest.raises(TypeError, match="master's address must be a str as HOST:PORT"):
        master_url(address)
