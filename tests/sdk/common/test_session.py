"""Sessions and requests as client scripts of 0.25 make them: answers are those of requests."""

from __future__ import annotations

import pytest

from determined.common import api
from determined.common.api import authentication, certs, errors
from determined.common.experimental import ExperimentReference
from determined.experimental import client
from tests.sdk.fake_gateway import Status


@pytest.fixture
def master(gateway, client_home, monkeypatch):
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 0}')
    gateway.answer("POST", "/api/v1/auth/login", {"token": "t", "user": {}})
    gateway.answer("GET", "/api/v1/me", {"user": {"username": "determined", "id": 2}})
    return gateway


@pytest.fixture
def session(master):
    auth = api.Authentication(master.url, "determined", "", None)
    return api.Session(master.url, "determined", auth, certs.Cert(noverify=True), max_retries=0)


def test_every_method_gives_the_answer_itself(master, session):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        master.answer(method, "/api/v1/things", {"by": method})
        answer = getattr(session, method.lower())("/api/v1/things", params={"a": [1, 2]}, timeout=60)
        assert (answer.status_code, answer.json()) == (200, {"by": method})
        assert master.calls[-1].query == {"a": ["1", "2"]}
        assert master.calls[-1].headers["Authorization"] == "Bearer t"


def test_bodies_are_json_or_as_they_are(master, session):
    master.answer("POST", "/api/v1/things", {})
    session.post("api/v1/things", json={"x": 1})
    assert master.calls[-1].json == {"x": 1}
    session.post("/api/v1/things", data='{"y": 2}', headers={"X-Own": "z"})
    assert master.calls[-1].json == {"y": 2}
    assert master.calls[-1].headers["X-Own"] == "z"


def test_refusals_are_raised(master, session):
    master.answer("GET", "/api/v1/things", Status(404, {"error": {"error": "no such thing"}}))
    with pytest.raises(errors.NotFoundException, match="no such thing"):
        session.get("/api/v1/things")


def test_retries_are_chosen(master, session):
    urllib3 = pytest.importorskip("urllib3")
    master.answer("GET", "/api/v1/things", Status(503, {}), {"third": False}, {"third": True})
    again = session.with_retry(urllib3.Retry(total=2, backoff_factor=0))
    assert again.get("/api/v1/things").json() == {"third": False}
    assert len(master.calls_to("GET", "/api/v1/things")) == 2


def test_client_objects_take_a_session_of_either_kind(master, session):
    master.answer("POST", "/api/v1/experiments/7/pause", {})
    ExperimentReference(7, session).pause()
    ExperimentReference(7, session.speaking).pause()
    assert len(master.calls_to("POST", "/api/v1/experiments/7/pause")) == 2
    user = client.User(3, "ada", False, session)
    master.answer("PATCH", "/api/v1/users/3", {"user": {"id": 3, "username": "ada", "active": True}})
    user.link_with_agent(1000, 1001, "ada", "people")
    group = {"agentUid": 1000, "agentGid": 1001, "agentUser": "ada", "agentGroup": "people"}
    assert master.calls[-1].json == {"agentUserGroup": group}
    user.link_with_agent(agent_uid=1000)
    assert master.calls[-1].json == {"agentUserGroup": {"agentUid": 1000}}


def test_single_requests(master, session):
    master.answer("GET", "/api/v1/master", {"version": "x"})
    auth = api.Authentication(master.url, "determined", "")
    assert api.get(master.url, "api/v1/master", auth=auth).json() == {"version": "x"}
    assert "Authorization" in master.calls[-1].headers
    assert api.get(master.url, "api/v1/master", authenticated=False).json() == {"version": "x"}
    assert "Authorization" not in master.calls[-1].headers
    master.answer("POST", "/api/v1/things", {})
    assert api.post(master.url, "/api/v1/things", {"a": 1}, auth=auth).status_code == 200
    assert master.calls[-1].json == {"a": 1}


def test_who_is_logged_in(master):
    auth = api.Authentication(master.url, "determined", "")
    assert (auth.get_session_user(), auth.get_session_token()) == ("determined", "t")
    assert not auth.is_user_active("somebody")
    auth._session.token = None
    assert auth.get_session_token(must=False) == ""
    with pytest.raises(errors.UnauthenticatedException):
        auth.get_session_token()


def test_what_the_command_line_sets_serves_all(master, monkeypatch):
    monkeypatch.setattr(authentication, "cli_auth", api.Authentication(master.url, "determined", ""))
    master.answer("GET", "/api/v1/things", {})
    api.Session(master.url, None, None, None).get("/api/v1/things")
    assert master.calls[-1].headers["Authorization"] == "Bearer t"


def test_addresses():
    assert api.make_url("h:80", "/x") == "http://h:80/x"
    assert api.make_url("https://h", "x/y") == "https://h:443/x/y"
    assert api.make_url("https://h/pre", "/x") == "https://h:443/pre/x"
    assert tuple(api.parse_master_address("h"))[:2] == ("http", "h:8080")
    assert (api.salt_and_hash(""), len(api.salt_and_hash("x"))) == ("", 128)


def test_a_chain_of_certificates_is_a_file_as_long_as_it_is_needed(tmp_path):
    cert = certs.Cert("-----BEGIN CERTIFICATE-----\n", name="master")
    path = cert.bundle
    with open(path) as file:
        assert file.read().startswith("-----BEGIN")
    assert cert.bundle == path
    (tmp_path / "pem").write_text("chain")
    assert certs.default_load("http://h", str(tmp_path / "pem"), "name").name == "name"
    assert certs.default_load("http://h", explicit_noverify=True).bundle is False
    assert certs.default_load("http://h").bundle is None
