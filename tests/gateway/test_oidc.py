"""Signing in with a provider of identities: the browser, the command line and the settings."""

import pytest

from det_contracts.events.gateway import SessionOpened, SignedIn, UserSet
from services.kit.settings import BadSettings
from services.people.oidc import pending
from services.people.oidc.settings import check_settings
from services.rest_requests.settings import Settings
from tests.gateway.harness import Harness
from tests.gateway.lying_provider import CLIENT, query_of
from tests.gateway.oidc import CALLBACK, START, begin, come_back, refused, sign_in
from tests.gateway.oidc import gateway as gateway
from tests.gateway.oidc import liar as liar
from tests.gateway.oidc import made as made
from tests.gateway.oidc import truthful as truthful


def test_who_signs_in_first_gets_an_account_and_a_session(gateway, liar):
    answer = sign_in(gateway, liar, {"return": "/det/models?x=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/det/models?x=1")
    me = gateway.get("/api/v1/me")["user"]
    assert (me["username"], me["displayName"], me["admin"], me["remote"]) == ("ann", "Ann A.", False, True)
    [signed_in] = gateway.events_of(SignedIn)
    assert (signed_in.issuer, signed_in.subject, signed_in.username) == (liar.url, "s-1", "ann")
    [opened] = gateway.events_of(SessionOpened)
    assert opened.user_id == signed_in.user_id


def test_the_next_time_it_is_the_same_account_whatever_they_are_called_now(gateway, liar):
    sign_in(gateway, liar)
    sign_in(gateway, liar, preferred_username="ann-married")
    assert gateway.get("/api/v1/me")["user"]["username"] == "ann"
    assert len(gateway.events_of(UserSet)) == 1


def test_the_browser_proves_that_it_is_the_one_that_began(gateway, liar):
    query = begin(gateway)
    assert query["code_challenge_method"] == "S256"
    assert query["scope"] == "openid profile email"
    assert query["redirect_uri"] == "http://gateway/api/v1/auth/oidc/callback"
    liar.says(query["nonce"])
    come_back(gateway, query["state"])
    [sent] = liar.server.sent
    assert sent["redirect_uri"] == query["redirect_uri"]
    assert jwt_challenge(sent["code_verifier"]) == query["code_challenge"]
    assert liar.server.headers[0]["Authorization"].startswith("Basic ")


def jwt_challenge(verifier):
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    return create_s256_code_challenge(verifier)


# -- hostile browsers


def test_another_state_is_refused(gateway, liar):
    query = begin(gateway)
    liar.says(query["nonce"])
    for state in ("", "x", query["state"][:-1]):
        refused(gateway, come_back(gateway, state))
        begin(gateway)
    assert liar.server.sent == []


def test_who_did_not_begin_here_is_refused(gateway, liar):
    query = begin(gateway)
    liar.says(query["nonce"])
    gateway.client.cookies.clear()
    assert "started in another browser" in refused(gateway, come_back(gateway, query["state"]))
    gateway.client.cookies.set("signing_in", "forged", path="/api/v1/auth/oidc")
    refused(gateway, come_back(gateway, query["state"]))
    assert liar.server.sent == []


def test_who_takes_too_long_begins_again(gateway, liar, monkeypatch):
    query = begin(gateway)
    liar.says(query["nonce"])
    monkeypatch.setattr(pending, "WITHIN_S", -1.0)
    assert "too long ago" in refused(gateway, come_back(gateway, query["state"]))


def test_a_code_that_comes_twice_opens_no_second_session(gateway, liar):
    """Whether or not the provider takes it a second time: this one does."""
    query = begin(gateway)
    liar.says(query["nonce"])
    cookies = dict(gateway.client.cookies)
    come_back(gateway, query["state"])
    assert gateway.send("GET", "/api/v1/me").status_code == 200
    gateway.post("/api/v1/auth/logout")
    gateway.client.cookies.clear()
    for name, value in cookies.items():
        gateway.client.cookies.set(name, value)
    come_back(gateway, query["state"])
    assert gateway.send("GET", "/api/v1/me").status_code == 401
    assert len(gateway.events_of(SessionOpened)) == 1


ELSEWHERE = [
    "https://evil.example/det/",
    "//evil.example/det/",
    "/\\evil.example",
    "/det/\\evil.example",
    "/det//../..//evil.example",
    "/detached",
    "/det/x\r\nSet-Cookie: a=b",
    "/det/\u202e",
    "javascript:alert(1)",
    "/api/v1/auth/logout",
    "/det/" + "x" * 5000,
]


def test_nobody_is_sent_elsewhere(gateway, liar):
    for place in ELSEWHERE:
        answer = sign_in(gateway, liar, {"return": place})
        assert (answer.status_code, answer.headers["location"]) == (303, "/det/dashboard"), place


def test_a_refusal_by_the_provider_is_reported_without_quoting_it(gateway, liar):
    liar.server.lies["/token"] = (400, {"error": "<script>", "error_description": "secret"})
    query = begin(gateway)
    text = refused(gateway, come_back(gateway, query["state"]))
    assert "script" not in text
    assert "secret" not in text
    text = refused(gateway, come_back(gateway, begin(gateway)["state"], code="", error="<b>"))
    assert "<b>" not in text


def test_who_fails_often_waits(gateway, liar, no_time_passes):
    query = begin(gateway)
    codes = {come_back(gateway, query["state"] + "x").status_code for _ in range(25)}
    assert codes == {401, 429}
    sent = len(liar.server.sent)
    last = come_back(gateway, query["state"])
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) > 0
    assert len(liar.server.sent) == sent


def test_a_command_gets_the_token_by_a_ticket_that_is_its_own(gateway, liar):
    query = {"port": 45_000, "challenge": pending.challenge_of("mine")}
    answer = sign_in(gateway, liar, query)
    assert answer.headers["location"].startswith("http://127.0.0.1:45000/?ticket=")
    assert "auth" not in gateway.client.cookies
    ticket = query_of(answer.headers["location"])["ticket"]
    for body in ({"ticket": ticket, "verifier": "other"}, {"ticket": "x" + ticket, "verifier": "mine"}):
        gateway.refused(401, "POST", "/api/v1/auth/oidc/token", body)
    body = {"ticket": ticket, "verifier": "mine"}
    login = gateway.post("/api/v1/auth/oidc/token", body)
    assert login["user"]["username"] == "ann"
    bearer = {"Authorization": f"Bearer {login['token']}"}
    assert gateway.send("GET", "/api/v1/me", headers=bearer).status_code == 200
    gateway.send("POST", "/api/v1/auth/logout", headers=bearer)
    gateway.refused(401, "POST", "/api/v1/auth/oidc/token", body)


def test_a_cookie_is_no_ticket_and_a_ticket_no_cookie(gateway):
    begin(gateway)
    cookie = gateway.client.cookies["signing_in"]
    gateway.refused(401, "POST", "/api/v1/auth/oidc/token", {"ticket": cookie, "verifier": ""})


@pytest.mark.parametrize(
    "params", [{"port": 80, "challenge": "0" * 64}, {"port": 45_000}, {"challenge": "x"}]
)
def test_a_command_that_waits_nowhere_is_refused(gateway, params):
    assert gateway.send("GET", START, params=params).status_code == 400


def test_without_a_provider_there_is_nothing(tmp_path):
    gateway = Harness(tmp_path)
    try:
        assert gateway.get("/api/v1/master")["ssoProviders"] == []
        for path in (START, CALLBACK):
            assert gateway.send("GET", path).status_code == 404
    finally:
        gateway.close()


def test_the_sign_in_page_gets_the_address_of_the_provider(gateway):
    [provider] = gateway.get("/api/v1/master")["ssoProviders"]
    assert (provider["name"], provider["ssoUrl"]) == ("Single sign-on", START)


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_client_id": ""},
        {"oidc_issuer": "http://idp.example"},
        {"oidc_issuer": "idp.example"},
        {"oidc_scopes": "profile"},
        {"oidc_redirect_url": "http://lab.example/x"},
        {"oidc_groups": "ml="},
    ],
)
def test_inconsistent_settings_are_reported(settings):
    valid_settings = {"oidc_issuer": "https://idp.example", "oidc_client_id": CLIENT}
    assert check_settings(Settings(**valid_settings)) is not None
    with pytest.raises(BadSettings, match="STEADFAST_OIDC_"):
        check_settings(Settings(**valid_settings | settings))


def test_a_secret_comes_from_a_file(made, tmp_path):
    (tmp_path / "secret").write_text("from a file\n")
    gateway = made(oidc_client_secret="", oidc_client_secret_file=tmp_path / "secret")
    assert gateway.backend.provider._secret == "from a file"
    with pytest.raises(BadSettings, match="STEADFAST_OIDC_CLIENT_SECRET_FILE"):
        _ = made(oidc_client_secret_file=tmp_path / "none").backend.provider
