"""Requests that a browser sends for somebody else's page: by a name that leads here, and across origins."""

import pytest

from tests.gateway.harness import Harness

LOGIN = {"username": "determined", "password": ""}


@pytest.fixture
def named(tmp_path):
    harness = Harness(
        tmp_path,
        allowed_hosts="gateway, lab.example.org, *.lab.example.org",
        allowed_origins="https://portal.example.org",
    )
    harness.log_in()
    yield harness
    harness.close()


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST:8080", "localhost.", "app.localhost:8080", "127.0.0.1:8080", "[::1]:8080",
        "10.3.4.5", "[fe80::1]", "lab.example.org", "a.b.lab.example.org:443",
    ],
)  # fmt: skip
def test_ours_are_addresses_this_machine_and_what_is_set(named, host):
    assert named.send("GET", "/api/v1/me", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com", "evil.example.com:8080", "lab.example.org.evil.com", "xlab.example.org",
        "localhost@evil.com", "127.0.0.1.evil.com", "localhostevil", "", "a b", "[evil]", "127.0.0.1:8080:1",
    ],
)  # fmt: skip
def test_a_name_that_somebody_led_here_gets_nothing(named, host):
    for method, path in (
        ("GET", "/api/v1/me"),
        ("POST", "/api/v1/auth/login"),
        ("GET", "/det/"),
        ("GET", "/info"),
    ):
        answer = named.send(method, path, LOGIN if method == "POST" else None, headers={"Host": host})
        assert answer.status_code == 421, (path, answer.text)
        assert "STEADFAST_ALLOWED_HOSTS" in answer.text
        assert "set-cookie" not in answer.headers


def test_by_default_other_names_are_refused(gateway):
    assert gateway.send("GET", "/api/v1/me", headers={"Host": "evil.example.com"}).status_code == 421


def test_any_name_is_ours_where_that_is_set(tmp_path):
    harness = Harness(tmp_path, allowed_hosts="*")
    try:
        assert harness.send("GET", "/info", headers={"Host": "whatever.example.com"}).status_code == 200
    finally:
        harness.close()


def as_page(gateway, origin, *, method="POST", path="/api/v1/users/setting/reset", **headers):
    """What a browser that is logged in sends for a page."""
    token = gateway.log_in()
    del gateway.client.headers["Authorization"]
    sent = {"Cookie": f"auth={token}", "Host": "localhost:8080", **headers}
    sent |= {"Origin": origin} if origin is not None else {}
    return gateway.send(method, path, headers=sent)


@pytest.mark.parametrize(
    "origin", ["http://localhost:8080", "HTTP://LOCALHOST:8080", "https://portal.example.org"]
)
def test_our_own_pages_change_things(named, origin):
    assert as_page(named, origin).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example.com", "null", "http://localhost:9090", "http://localhost", "https://portal.example.org:8443",
        "http://portal.example.org", "file://localhost:8080", "",
    ],
)  # fmt: skip
def test_another_sites_page_changes_nothing(named, origin):
    answer = as_page(named, origin)
    assert answer.status_code == 403
    assert "STEADFAST_ALLOWED_ORIGINS" in answer.json()["error"]["error"]
    assert as_page(named, origin, method="GET", path="/api/v1/me").status_code == 200


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_what_browsers_say_in_place_of_an_origin_counts(named, site, status):
    assert as_page(named, None, **{"Sec-Fetch-Site": site}).status_code == status


def test_nobody_is_logged_in_by_another_sites_page(named):
    headers = {"Origin": "https://evil.example.com"}
    answer = named.send(
        "POST", "/api/v1/auth/login", LOGIN, headers={**headers, "Authorization": "Basic eDp5"}
    )
    assert answer.status_code == 200, "a header of its own needs leave, which a page does not get"
    del named.client.headers["Authorization"]
    assert named.send("POST", "/api/v1/auth/login", LOGIN, headers=headers).status_code == 403


def test_programs_send_no_origin_and_are_not_asked_for_one(named):
    token = named.log_in()
    del named.client.headers["Authorization"]
    answer = named.send("POST", "/api/v1/users/setting/reset", headers={"Cookie": f"auth={token}"})
    assert answer.status_code == 200


def test_with_tls_a_page_without_it_is_another_one(named):
    headers = {"Origin": "http://localhost", "Host": "localhost"}
    del named.client.headers["Authorization"]
    for scheme, status in (("http", 200), ("https", 403)):
        answer = named.send("POST", f"{scheme}://localhost/api/v1/auth/login", LOGIN, headers=headers)
        assert answer.status_code == status


def test_the_cookie_keeps_to_tls_and_to_our_own_pages(named):
    for scheme in ("http", "https"):
        cookie = named.send("POST", f"{scheme}://localhost/api/v1/auth/login", LOGIN).headers["set-cookie"]
        assert ("; secure" in cookie.lower()) == (scheme == "https")
        assert "httponly" in cookie.lower()
        assert "samesite=strict" in cookie.lower()
        named.client.cookies.clear()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/me", 200),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v1/experiments/abc", 400),
        ("POST", "/api/v1/auth/login", 400),
        ("GET", "/det/dashboard", 200),
        ("GET", "/docs", 200),
        ("GET", "/prom/det-state-metrics", 200),
        ("GET", "/api/v1/master/config", 403),
    ],
)
def test_no_answer_is_taken_for_what_it_does_not_say_it_is(gateway, method, path, status):
    answer = gateway.send(method, path, {} if method == "POST" else None)
    assert answer.status_code == status, answer.text
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("referrer-policy") == ["same-origin"]


def test_a_refused_host_and_a_page_of_a_task_have_headers_of_their_own(gateway):
    refused = gateway.send("GET", "/det/", headers={"Host": "evil.example.com"})
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert "x-content-type-options" not in gateway.send("GET", "/proxy/1.r1/").headers
