"""Whom the platform asks because a person named them: nobody of its own network but whom settings name."""

from __future__ import annotations

import ipaddress
import socket

import pytest
import urllib3

from services.kit.addresses import Addresses, AddressRefused, check_keys, is_public
from services.kit.guarded_http import pool_manager

PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
OTHERS = [
    *("127.0.0.1", "127.8.9.10", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "198.18.0.1", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255"),
    *(
        "::",
        "::1",
        "0::",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
    ),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2002:a00:1::1", "2001:db8::1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address):
    assert is_public(ipaddress.ip_address(address))
    assert Addresses().is_allowed("store", 443, address)


@pytest.mark.parametrize("address", OTHERS)
def test_other_addresses(address):
    assert not is_public(ipaddress.ip_address(address))
    assert not Addresses(["http://minio:9000"]).is_allowed("store", 9000, address)


def test_what_settings_allow():
    addresses = Addresses(
        ["http://minio:9000", "https://s3.lan", None, ""], "10.1.0.0/16, ::1/128,nas:443,old"
    )
    own = [("minio", 9000), ("MinIO", 9000), ("s3.lan", 443), ("nas", 443), ("old", 1), ("old", 2)]
    for host, port in own:
        assert addresses.is_allowed(host, port, "10.9.9.9"), (host, port)
    for host, port in (("minio", 9001), ("s3.lan", 80), ("nas", 80), ("minio.evil", 9000)):
        assert not addresses.is_allowed(host, port, "10.9.9.9"), (host, port)
    assert addresses.is_allowed("any", 1, "10.1.2.3")
    assert addresses.is_allowed("any", 1, "::1")
    assert addresses.is_configured("http://minio:9000/")
    assert not addresses.is_configured("http://minio:9001")


@pytest.mark.parametrize("wrong", ["10.1.0.0/99", "10.1.2.3/8"])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match="1"):
        Addresses(allowed=wrong)


def test_the_clusters_keys_go_to_its_own_store():
    cluster = {"type": "s3", "endpoint_url": "http://minio:9000", "access_key": "A", "secret_key": "S"}
    addresses = Addresses(["http://minio:9000"])
    check_keys({"type": "s3"}, cluster, addresses)
    check_keys(cluster, cluster, addresses)
    check_keys({"type": "s3", "access_key": "B", "endpoint_url": "http://other"}, cluster, addresses)
    for keys in ({}, {"access_key": None}, {"access_key": "A"}):
        with pytest.raises(AddressRefused, match="access_key"):
            check_keys({"type": "s3", "endpoint_url": "http://evil", **keys}, cluster, addresses)


@pytest.fixture
def listener():
    """Something on loopback that would be asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        yield server


def ask(addresses, url):
    timeout = urllib3.Timeout(connect=2, read=0.1)
    return pool_manager(addresses, timeout, urllib3.Retry(0, redirect=False)).request("GET", url)


def connected(server):
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0"])
def test_nobody_is_asked_who_may_not_be(listener, host):
    with pytest.raises((AddressRefused, urllib3.exceptions.HTTPError)):
        ask(Addresses(), f"http://{host}:{listener.getsockname()[1]}/")
    assert not connected(listener)


def test_the_address_that_was_checked_is_asked(listener, monkeypatch):
    """A name that means a public address when it is looked at, and loopback from then on."""
    port = listener.getsockname()[1]
    real, resolved = socket.getaddrinfo, []

    def rebinding(host, *rest, **more):
        if host != "evil.test":
            return real(host, *rest, **more)
        resolved.append(host)
        address = "203.0.113.7" if len(resolved) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    monkeypatch.setattr("services.kit.addresses.is_public", lambda address: str(address) == "203.0.113.7")
    addresses = []

    def nowhere(address, *rest):
        addresses.append(address)
        raise OSError("no way there")

    monkeypatch.setattr("services.kit.guarded_http.low.create_connection", nowhere)
    with pytest.raises(urllib3.exceptions.HTTPError):
        ask(Addresses(), f"http://evil.test:{port}/")
    assert addresses == [("203.0.113.7", port)]
    assert not connected(listener)
