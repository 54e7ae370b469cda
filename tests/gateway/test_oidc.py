"""Signing in with a provider of identities, and what a hostile browser or provider gets out of it."""

import time

import pytest
from joserfc.jwk import RSAKey

from det_contracts.commands import CloseSession
from det_contracts.events.gateway import GroupSet, SessionOpened, SignedIn, UserSet
from services.kit.rules import Call
from services.kit.settings import BadSettings
from services.people.oidc import pending, provider, provider_http
from services.people.oidc.settings import check_settings
from services.rest_requests.settings import Settings
from services.web.pacing import Pacing
from tests.gateway.harness import Harness
from tests.gateway.lying_provider import CLIENT, LyingProvider, query_of

HUGE = b"x" * (32 << 20)
START, CALLBACK = "/api/v1/auth/oidc/start", "/api/v1/auth/oidc/callback"


@pytest.fixture(scope="module")
def liar():
    found = LyingProvider()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def truthful(liar):
    liar.header, liar.more, liar.sign = {"alg": "RS256", "kid": "one"}, {}, liar._sign
    liar.server.lies.clear()
    for seen in (liar.server.sent, liar.server.asked, liar.server.headers):
        seen.clear()
    liar.server.stops_half_way, liar.server.taken = False, 0


@pytest.fixture
def made(tmp_path, liar):
    """Makes gateways."""
    harnesses = []

    def make(**settings):
        folder = tmp_path / str(len(harnesses))
        folder.mkdir()
        known = {"oidc_issuer": liar.url, "oidc_client_id": CLIENT, "oidc_client_secret": "hush"}
        harnesses.append(Harness(folder, **known | settings))
        return harnesses[-1]

    yield make
    for one in harnesses:
        one.close()


@pytest.fixture
def gateway(made):
    return made()


def begin(gateway, **params):
    """What the provider is sent, by way of the browser."""
    answer = gateway.send("GET", START, params=params)
    assert answer.status_code == 303, answer.text
    return query_of(answer.headers["location"])


def come_back(gateway, state, code="c", **params):
    return gateway.send("GET", CALLBACK, params={"code": code, "state": state, **params})


def sign_in(gateway, liar, back=None, **claims):
    asked = begin(gateway, **(back or {}))
    liar.says(asked["nonce"], **claims)
    return come_back(gateway, asked["state"])


def forgiven(gateway):
    """Failures from before do not count."""
    gateway.backend.__dict__.pop("logins", None)


def refused(gateway, answer, status=401):
    """The text of a page that says why somebody is not signed in."""
    assert answer.status_code == status, answer.text
    assert "auth" not in gateway.client.cookies
    assert gateway.said(SessionOpened) == []
    return answer.text


def test_who_signs_in_first_gets_an_account_and_a_session(gateway, liar):
    answer = sign_in(gateway, liar, {"return": "/det/models?x=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/det/models?x=1")
    me = gateway.get("/api/v1/me")["user"]
    assert (me["username"], me["displayName"], me["admin"], me["remote"]) == ("ann", "Ann A.", False, True)
    [known] = gateway.said(SignedIn)
    assert (known.issuer, known.subject, known.username) == (liar.url, "s-1", "ann")
    [opened] = gateway.said(SessionOpened)
    assert opened.user_id == known.user_id


def test_the_next_time_it_is_the_same_account_whatever_they_are_called_now(gateway, liar):
    sign_in(gateway, liar)
    sign_in(gateway, liar, preferred_username="ann-married")
    assert gateway.get("/api/v1/me")["user"]["username"] == "ann"
    assert len(gateway.said(UserSet)) == 1


def test_the_browser_proves_that_it_is_the_one_that_began(gateway, liar):
    asked = begin(gateway)
    assert asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "openid profile email"
    assert asked["redirect_uri"] == "http://gateway/api/v1/auth/oidc/callback"
    liar.says(asked["nonce"])
    come_back(gateway, asked["state"])
    [sent] = liar.server.sent
    assert sent["redirect_uri"] == asked["redirect_uri"]
    assert jwt_challenge(sent["code_verifier"]) == asked["code_challenge"]
    assert liar.server.headers[0]["Authorization"].startswith("Basic ")


def jwt_challenge(verifier):
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    return create_s256_code_challenge(verifier)


# -- hostile browsers


def test_another_state_is_refused(gateway, liar):
    asked = begin(gateway)
    liar.says(asked["nonce"])
    for state in ("", "x", asked["state"][:-1]):
        refused(gateway, come_back(gateway, state))
        begin(gateway)
    assert liar.server.sent == []


def test_who_did_not_begin_here_is_refused(gateway, liar):
    asked = begin(gateway)
    liar.says(asked["nonce"])
    gateway.client.cookies.clear()
    assert "not begun here" in refused(gateway, come_back(gateway, asked["state"]))
    gateway.client.cookies.set("signing_in", "forged", path="/api/v1/auth/oidc")
    refused(gateway, come_back(gateway, asked["state"]))
    assert liar.server.sent == []


def test_who_takes_too_long_begins_again(gateway, liar, monkeypatch):
    asked = begin(gateway)
    liar.says(asked["nonce"])
    monkeypatch.setattr(pending, "WITHIN_S", -1.0)
    assert "too long ago" in refused(gateway, come_back(gateway, asked["state"]))


def test_a_code_that_comes_twice_opens_no_second_session(gateway, liar):
    """Whether or not the provider takes it a second time: this one does."""
    asked = begin(gateway)
    liar.says(asked["nonce"])
    kept = dict(gateway.client.cookies)
    come_back(gateway, asked["state"])
    assert gateway.send("GET", "/api/v1/me").status_code == 200
    gateway.post("/api/v1/auth/logout")
    gateway.client.cookies.clear()
    for name, value in kept.items():
        gateway.client.cookies.set(name, value)
    come_back(gateway, asked["state"])
    assert gateway.send("GET", "/api/v1/me").status_code == 401
    assert len(gateway.said(SessionOpened)) == 1


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
    asked = begin(gateway)
    text = refused(gateway, come_back(gateway, asked["state"]))
    assert "script" not in text
    assert "secret" not in text
    text = refused(gateway, come_back(gateway, begin(gateway)["state"], code="", error="<b>"))
    assert "<b>" not in text


def test_who_fails_often_waits(gateway, liar):
    asked = begin(gateway)
    codes = {come_back(gateway, asked["state"] + "x").status_code for _ in range(25)}
    assert codes == {401, 429}
    sent = len(liar.server.sent)
    last = come_back(gateway, asked["state"])
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) > 0
    assert len(liar.server.sent) == sent


# -- hostile tokens

WRONG = {
    "nonce": "another sign-in's",
    "aud": "another client",
    "iss": "https://evil.example",
    "azp": "another client",
    "exp": int(time.time()) - 3600,
    "nbf": int(time.time()) + 3600,
    "iat": int(time.time()) + 3600,
    "sub": "",
}


@pytest.mark.parametrize("claim", WRONG)
def test_a_wrong_claim_is_refused(gateway, liar, claim):
    refused(gateway, sign_in(gateway, liar, **{claim: WRONG[claim]}))


@pytest.mark.parametrize("claim", ["nonce", "aud", "iss", "exp", "sub"])
def test_a_missing_claim_is_refused(gateway, liar, claim):
    asked = begin(gateway)
    liar.says(asked["nonce"])
    del liar.claims[claim]
    refused(gateway, come_back(gateway, asked["state"]))


def test_claims_of_any_kind_are_no_failure(gateway, liar):
    for claim in ("sub", "aud", "nonce", "exp"):
        for value in ([], {}, -1, True, "x" * 300, ["a", "b"]):
            forgiven(gateway)
            refused(gateway, sign_in(gateway, liar, **{claim: value}))


@pytest.mark.parametrize(
    "how", ["unsigned", "signed_with_the_public_key", "of_another_key", "no_token", "text"]
)
def test_what_the_provider_did_not_sign_is_refused(gateway, liar, how):
    other = RSAKey.generate_key(2048, {"kid": "one"})
    liar.sign = {
        "of_another_key": lambda: liar.signed_by(other),
        "no_token": lambda: None,
        "text": lambda: "a.b.c",
    }.get(how) or getattr(liar, how)
    refused(gateway, sign_in(gateway, liar))


def test_clocks_may_differ_a_little(gateway, liar):
    now = int(time.time())
    assert sign_in(gateway, liar, exp=now - 30, iat=now + 30).status_code == 303


def test_a_new_key_is_asked_for(gateway, liar, monkeypatch):
    sign_in(gateway, liar)
    before, liar.key = liar.key, RSAKey.generate_key(2048, {"kid": "two"})
    liar.header = {"alg": "RS256", "kid": "two"}
    # A stranger's signature does not make us ask again and again.
    asked = len(liar.server.asked)
    assert sign_in(gateway, liar).status_code == 401
    assert "/jwks" not in liar.server.asked[asked:]
    monkeypatch.setattr(provider, "RETRY_S", 0.0)
    assert sign_in(gateway, liar).status_code == 303
    # What the provider no longer shows is no longer believed.
    liar.sign = lambda: liar.signed_by(before, kid="one")
    assert sign_in(gateway, liar).status_code == 401
    liar.key = RSAKey.generate_key(2048, {"kid": "one"})


# -- hostile providers


def test_a_provider_that_is_away_is_said_so(made):
    gateway = made(oidc_issuer="http://127.0.0.1:9")
    answer = gateway.send("GET", START)
    assert answer.status_code == 502
    assert "does not answer" in answer.text
    assert gateway.get("/api/v1/master")["ssoProviders"]


SAID = [HUGE, b"[" * 200_000, b"[]", b"{}", b"\xff", (500, {}), (302, {})]


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks", "/token"])
def test_whatever_a_provider_says_is_no_failure(gateway, liar, path):
    for said in SAID:
        liar.server.lies[path] = said
        answer = gateway.send("GET", START)
        if answer.status_code == 303:
            asked = query_of(answer.headers["location"])
            liar.says(asked["nonce"])
            answer = come_back(gateway, asked["state"])
        assert answer.status_code in (401, 502), answer.text
        refused(gateway, answer, answer.status_code)
        if said is HUGE:
            assert liar.server.taken < len(HUGE)


def test_a_provider_that_never_ends_is_left(gateway, liar, monkeypatch):
    monkeypatch.setattr(provider_http, "WITHIN_S", 0.2)
    liar.server.stops_half_way = True
    assert gateway.send("GET", START).status_code == 502
    assert gateway.backend.limits.sign_ins.admission.active == 0


def test_a_provider_leads_nowhere_else(gateway, liar):
    places = ("token_endpoint", "jwks_uri", "authorization_endpoint")
    for name in places:
        # A browser may go to an address of this network, the gateway may not.
        inside = ("https://10.0.0.1/",) if name != "authorization_endpoint" else ()
        for url in ("http://10.0.0.1/", "file:///etc/passwd", *inside, "http://[::1", 7):
            liar.server.lies["/.well-known/openid-configuration"] = liar.metadata() | {name: url}
            gateway.backend.provider._cached = None
            answer = gateway.send("GET", START)
            if answer.status_code == 303:
                answer = come_back(gateway, query_of(answer.headers["location"])["state"])
            assert answer.status_code == 502, (name, url)


def test_another_issuer_is_refused(gateway, liar):
    liar.server.lies["/.well-known/openid-configuration"] = liar.metadata() | {"issuer": "https://e.example"}
    assert "https://e.example" in gateway.send("GET", START).text


def test_more_is_asked_for_and_believed_of_the_same_person_alone(made, liar):
    gateway = made(oidc_allowed_groups="ml")
    with_more = liar.metadata() | {"userinfo_endpoint": f"{liar.url}/userinfo"}
    liar.server.lies["/.well-known/openid-configuration"] = with_more
    liar.more = {"sub": "somebody else", "groups": ["ml"]}
    refused(gateway, sign_in(gateway, liar))
    liar.more = {"sub": "s-1", "groups": ["ml"], "preferred_username": "admin"}
    assert sign_in(gateway, liar).status_code == 303
    assert gateway.get("/api/v1/me")["user"]["username"] == "ann"


# -- accounts


def user(id, name, **more):
    return UserSet(user_id=id, username=name, reason="made", **more)


def test_an_account_with_a_password_is_not_taken_over(gateway, liar):
    for name in ("admin", "determined", "ADMIN"):
        text = refused(gateway, sign_in(gateway, liar, preferred_username=name), 403)
        assert "link-with-provider" in text or "cannot be the name" in text
    gateway.given(user(3, "bob"), user(4, "robert", former=("rob",)))
    for name in ("bob", "robert", "rob"):
        refused(gateway, sign_in(gateway, liar, preferred_username=name), 403)
    assert gateway.said(SignedIn) == []


def test_an_account_that_was_linked_is_taken_by_the_first_of_its_name_and_by_nobody_after(gateway, liar):
    gateway.given(user(3, "bob", remote=True))
    assert sign_in(gateway, liar, preferred_username="bob").status_code == 303
    assert gateway.get("/api/v1/me")["user"]["id"] == 3
    gateway.client.cookies.clear()
    answer = sign_in(gateway, liar, preferred_username="bob", sub="s-2")
    assert answer.status_code == 403
    assert "auth" not in gateway.client.cookies
    # Linked anew, it is taken anew; unlinked, it is not.
    gateway.given(user(3, "bob"))
    assert sign_in(gateway, liar, preferred_username="bob").status_code == 403
    gateway.given(user(3, "bob", remote=True))
    assert sign_in(gateway, liar, preferred_username="bob", sub="s-2").status_code == 303


def test_who_is_not_active_stays_out(gateway, liar):
    sign_in(gateway, liar)
    gateway.given(user(3, "ann", remote=True, active=False))
    gateway.client.cookies.clear()
    answer = sign_in(gateway, liar)
    assert (answer.status_code, "user is not active" in answer.text) == (403, True)
    assert "auth" not in gateway.client.cookies
    gateway.given(user(4, "carl", remote=True, active=False))
    assert sign_in(gateway, liar, preferred_username="carl", sub="s-4").status_code == 403


@pytest.mark.parametrize(
    "name", ["", "  ", "a\nb", "a\u202eb", "x" * 129, "\uff41nn", " ann", 7, None, ["ann"], "\ud800"]
)
def test_names_that_would_be_read_otherwise_are_refused(gateway, liar, name):
    assert sign_in(gateway, liar, preferred_username=name).status_code in (401, 403)
    assert gateway.said(UserSet) == []


@pytest.mark.parametrize("name", ["o'brien", "ann@lab.example", "Åse Ünal", "名前", "<b>", "a/b", "a b;--"])
def test_odd_names_are_names(gateway, liar, name):
    assert sign_in(gateway, liar, preferred_username=name).status_code == 303
    assert gateway.get("/api/v1/me")["user"]["username"] == name


def test_shown_names_deceive_nobody(gateway, liar):
    sign_in(gateway, liar, name="Admin")
    assert gateway.get("/api/v1/me")["user"]["displayName"] == ""
    for number, name in enumerate(("\u0430\u0501\u043cin", "Carl\u3164")):
        sign_in(gateway, liar, sub=f"s-1{number}", preferred_username=f"u{number}", name=name)
        assert gateway.said(UserSet)[-1].display_name == ""
    sign_in(gateway, liar, sub="s-2", preferred_username="eve", name="\u202eEve\n" + "x" * 500)
    assert gateway.said(UserSet)[-1].display_name == "Eve" + "x" * 125


def test_only_those_with_an_account_where_none_is_made(made, liar):
    gateway = made(oidc_provision=False)
    assert "det user create ann --remote" in refused(gateway, sign_in(gateway, liar), 403)
    gateway.given(user(3, "ann", remote=True))
    assert sign_in(gateway, liar).status_code == 303


def test_an_address_counts_as_a_name_only_if_it_was_verified(made, liar):
    gateway = made(oidc_username_claim="email")
    for verified in (False, None, "true"):
        refused(gateway, sign_in(gateway, liar, email="ann@lab", email_verified=verified))
    assert sign_in(gateway, liar, email="ann@lab", email_verified=True).status_code == 303


@pytest.mark.parametrize("groups", [None, [], "other", ["other", 7], {"ml": 1}, 7])
def test_only_members_of_the_allowed_groups_sign_in(made, liar, groups):
    gateway = made(oidc_allowed_groups="ml, vision")
    refused(gateway, sign_in(gateway, liar, groups=groups))
    assert sign_in(gateway, liar, groups=["vision", "other"]).status_code == 303
    assert gateway.said(SignedIn)[-1].groups == ("vision",)


def test_the_providers_groups_grant_and_revoke_administrator_rights(made, liar):
    gateway = made(oidc_admin_groups="ops")
    sign_in(gateway, liar, groups=["ops"])
    assert gateway.get("/api/v1/me")["user"]["admin"]
    sign_in(gateway, liar, groups=[])
    assert not gateway.get("/api/v1/me")["user"]["admin"]


def test_the_last_administrator_stays_one(made, liar):
    gateway = made(oidc_admin_groups="ops")
    sign_in(gateway, liar, groups=["ops"])
    gateway.given(user(1, "admin"))
    assert sign_in(gateway, liar, groups=[]).status_code == 303
    assert gateway.get("/api/v1/me")["user"]["admin"]


def groups_of(gateway):
    return {one.name: one.members for one in gateway.catalogue.state.groups.values()}


def test_the_provider_fills_the_groups_that_it_manages_and_no_others(made, liar):
    gateway = made(oidc_groups="ml=Vision, lab=Vision, ops")
    gateway.given(GroupSet(group_id=1, name="VISION", members=(2,), reason="made"))
    gateway.given(GroupSet(group_id=2, name="by hand", members=(2, 3), reason="made"))
    sign_in(gateway, liar, groups=["lab", "ops", "by hand", "other"])
    assert groups_of(gateway) == {"VISION": (2, 3), "by hand": (2, 3), "ops": (3,)}
    assert gateway.said(SignedIn)[-1].groups == ("lab", "ops")
    told = len(gateway.said(GroupSet))
    sign_in(gateway, liar, groups=["ml", "ops"])
    assert len(gateway.said(GroupSet)) == told
    sign_in(gateway, liar, groups=[])
    assert groups_of(gateway) == {"VISION": (2,), "by hand": (2, 3), "ops": ()}


def test_who_has_no_groups_claim_is_in_none(made, liar):
    gateway = made(oidc_groups="ops")
    sign_in(gateway, liar, groups=["ops"])
    sign_in(gateway, liar, groups=None)
    assert groups_of(gateway) == {"ops": ()}


def test_two_groups_that_are_made_at_once_have_two_ids(made, liar):
    gateway = made(oidc_groups="a, b, x=y=c")
    sign_in(gateway, liar, groups=["a", "b", "x=y"])
    assert groups_of(gateway) == {"a": (3,), "b": (3,), "c": (3,)}


def test_a_session_that_is_closed_while_it_waits_its_turn_is_refused(gateway, liar, monkeypatch):
    sign_in(gateway, liar)
    closing = gateway.peers.close

    async def turn(self, who):
        [id] = gateway.catalogue.state.open_sessions
        await closing(CloseSession(session_id=id, user="ann"), Call("close", time.time()))

    monkeypatch.setattr(Pacing, "_turn", turn)
    assert gateway.send("GET", "/api/v1/me").status_code == 401


def test_no_password_lets_a_linked_user_in(gateway, liar):
    sign_in(gateway, liar)
    gateway.client.cookies.clear()
    gateway.refused(401, "POST", "/api/v1/auth/login", {"username": "ann", "password": ""})


def test_another_replica_finishes_and_a_new_one_knows_them(made, liar, tmp_path):
    first = made()
    (tmp_path / "other").mkdir()
    other = Harness(tmp_path / "other", first, oidc_issuer=liar.url, oidc_client_id=CLIENT)
    try:
        asked = begin(first)
        liar.says(asked["nonce"])
        other.client.cookies = first.client.cookies
        assert come_back(other, asked["state"]).status_code == 303
        sign_in(first, liar)
        assert {one.user_id for one in first.said(SignedIn)} == {3}
    finally:
        other.close()


# -- the command line


def test_a_command_gets_the_token_by_a_ticket_that_is_its_own(gateway, liar):
    known = {"port": 45_000, "challenge": pending.challenge_of("mine")}
    answer = sign_in(gateway, liar, known)
    assert answer.headers["location"].startswith("http://127.0.0.1:45000/?ticket=")
    assert "auth" not in gateway.client.cookies
    ticket = query_of(answer.headers["location"])["ticket"]
    for body in ({"ticket": ticket, "verifier": "other"}, {"ticket": "x" + ticket, "verifier": "mine"}):
        gateway.refused(401, "POST", "/api/v1/auth/oidc/token", body)
    body = {"ticket": ticket, "verifier": "mine"}
    found = gateway.post("/api/v1/auth/oidc/token", body)
    assert found["user"]["username"] == "ann"
    bearer = {"Authorization": f"Bearer {found['token']}"}
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


# -- settings


def test_without_a_provider_there_is_nothing(tmp_path):
    gateway = Harness(tmp_path)
    try:
        assert gateway.get("/api/v1/master")["ssoProviders"] == []
        for path in (START, CALLBACK):
            assert gateway.send("GET", path).status_code == 404
    finally:
        gateway.close()


def test_the_sign_in_page_gets_the_address_of_the_provider(gateway):
    [known] = gateway.get("/api/v1/master")["ssoProviders"]
    assert (known["name"], known["ssoUrl"]) == ("Single sign-on", START)


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
    known = {"oidc_issuer": "https://idp.example", "oidc_client_id": CLIENT}
    assert check_settings(Settings(**known)) is not None
    with pytest.raises(BadSettings, match="STEADFAST_OIDC_"):
        check_settings(Settings(**known | settings))


def test_a_secret_comes_from_a_file(made, tmp_path):
    (tmp_path / "secret").write_text("from a file\n")
    gateway = made(oidc_client_secret="", oidc_client_secret_file=tmp_path / "secret")
    assert gateway.backend.provider._secret == "from a file"
    with pytest.raises(BadSettings, match="STEADFAST_OIDC_CLIENT_SECRET_FILE"):
        _ = made(oidc_client_secret_file=tmp_path / "none").backend.provider
