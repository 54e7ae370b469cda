"""Users that are there from the beginning have no password, which is fine on a machine of one's own alone."""

import pytest

from services.gateway.starting import first_password
from services.kit.passwords import client_hash
from services.kit.settings import BadSettings
from services.rest_requests.settings import Settings, is_remotely_reachable
from tests.gateway.harness import Harness


def apply(gateway, **settings):
    gateway.run(first_password.apply(Settings(**settings), gateway.catalogue, gateway.backend.peers))


def status_of_login(gateway, name, password):
    body = {"username": name, "password": client_hash(password), "isHashed": True}
    answer = gateway.send("POST", "/api/v1/auth/login", body)
    gateway.client.cookies.clear()
    return answer.status_code


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1"])
def test_on_loopback_both_have_none(gateway, host):
    apply(gateway, host=host)
    assert status_of_login(gateway, "admin", "") == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gpu-3.example.org"])  # noqa: S104
def test_elsewhere_the_gateway_does_not_start(gateway, host):
    with pytest.raises(BadSettings) as refused:
        apply(gateway, host=host)
    for word in ("'admin' and 'determined'", host, "STEADFAST_INITIAL_PASSWORD", "det user change-password"):
        assert word in str(refused.value)


def test_nor_behind_a_proxy(gateway):
    assert is_remotely_reachable(Settings(trusted_proxies="127.0.0.1"))
    with pytest.raises(BadSettings):
        apply(gateway, trusted_proxies="127.0.0.1")


def test_both_get_that_of_the_settings_once(gateway, tmp_path):
    apply(gateway, host="0.0.0.0", initial_password="first")  # noqa: S104
    for name in ("admin", "determined"):
        assert status_of_login(gateway, name, "") == 401
        assert status_of_login(gateway, name, "first") == 200
    file = tmp_path / "password"
    file.write_text("other\n")
    apply(gateway, host="0.0.0.0", initial_password_file=file)  # noqa: S104
    assert status_of_login(gateway, "admin", "first") == 200
    apply(gateway, host="0.0.0.0")  # noqa: S104


def test_who_has_one_keeps_it(gateway, tmp_path):
    gateway.log_in("admin")
    gateway.send("POST", "/api/v1/users/1/password", client_hash("mine"))
    file = tmp_path / "password"
    file.write_text("first\n")
    apply(gateway, host="0.0.0.0", initial_password_file=file)  # noqa: S104
    assert status_of_login(gateway, "admin", "mine") == 200
    assert status_of_login(gateway, "determined", "first") == 200


def test_who_may_not_act_needs_none(gateway):
    gateway.log_in("admin")
    gateway.send("PATCH", "/api/v1/users/2", {"active": False})
    gateway.send("POST", "/api/v1/users/1/password", client_hash("mine"))
    apply(gateway, host="0.0.0.0")  # noqa: S104


def test_an_unreadable_password_file_is_reported(gateway, tmp_path):
    with pytest.raises(BadSettings, match=r"STEADFAST_INITIAL_PASSWORD_FILE=.*none cannot be read"):
        apply(gateway, initial_password_file=tmp_path / "none")


def test_where_others_reach_it_nobody_logs_in_without_a_password(tmp_path):
    """Those too who were made without one."""
    open_one = Harness(tmp_path, host="0.0.0.0", allowed_hosts="gateway")  # noqa: S104
    try:
        answer = open_one.send("POST", "/api/v1/auth/login", {"username": "determined", "password": ""})
        assert answer.status_code == 401
        assert "logging in without a password is not allowed here" in answer.json()["error"]["error"]
    finally:
        open_one.close()
