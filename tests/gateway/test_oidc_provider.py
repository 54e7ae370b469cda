"""Signing in: what hostile tokens and providers get out of it."""

import time

import pytest
from joserfc.jwk import RSAKey

from services.people.oidc import provider, provider_http
from tests.gateway.lying_provider import query_of
from tests.gateway.oidc import HUGE, START, begin, come_back, forgiven, refused, sign_in
from tests.gateway.oidc import gateway as gateway
from tests.gateway.oidc import liar as liar
from tests.gateway.oidc import made as made
from tests.gateway.oidc import truthful as truthful

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
    query = begin(gateway)
    liar.says(query["nonce"])
    del liar.claims[claim]
    refused(gateway, come_back(gateway, query["state"]))


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
    requests_before = len(liar.server.paths)
    assert sign_in(gateway, liar).status_code == 401
    assert "/jwks" not in liar.server.paths[requests_before:]
    monkeypatch.setattr(provider, "RETRY_S", 0.0)
    assert sign_in(gateway, liar).status_code == 303
    # What the provider no longer shows is no longer believed.
    liar.sign = lambda: liar.signed_by(before, kid="one")
    assert sign_in(gateway, liar).status_code == 401
    liar.key = RSAKey.generate_key(2048, {"kid": "one"})


def test_a_provider_that_is_away_is_said_so(made):
    gateway = made(oidc_issuer="http://127.0.0.1:9")
    answer = gateway.send("GET", START)
    assert answer.status_code == 502
    assert "does not answer" in answer.text
    assert gateway.get("/api/v1/master")["ssoProviders"]


SAID = [HUGE, b"[" * 200_000, b"[]", b"{}", b"\xff", (500, {}), (302, {})]


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks", "/token"])
def test_whatever_a_provider_says_is_no_failure(gateway, liar, path):
    for lie in SAID:
        liar.server.lies[path] = lie
        answer = gateway.send("GET", START)
        if answer.status_code == 303:
            query = query_of(answer.headers["location"])
            liar.says(query["nonce"])
            answer = come_back(gateway, query["state"])
        assert answer.status_code in (401, 502), answer.text
        refused(gateway, answer, answer.status_code)
        if lie is HUGE:
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
