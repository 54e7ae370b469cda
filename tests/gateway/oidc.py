"""Gateways whose provider of identities says whatever a test wants, and a browser that signs in."""

import pytest

from det_contracts.events.gateway import SessionOpened
from tests.gateway.harness import Harness
from tests.gateway.lying_provider import CLIENT, LyingProvider, query_of

HUGE = b"x" * (32 << 20)
START, CALLBACK = "/api/v1/auth/oidc/start", "/api/v1/auth/oidc/callback"


@pytest.fixture(scope="module")
def liar():
    provider = LyingProvider()
    yield provider
    provider.close()


@pytest.fixture(autouse=True)
def truthful(liar):
    liar.header, liar.more, liar.sign = {"alg": "RS256", "kid": "one"}, {}, liar._sign
    liar.server.lies.clear()
    for record in (liar.server.sent, liar.server.paths, liar.server.headers):
        record.clear()
    liar.server.stops_half_way, liar.server.taken = False, 0


@pytest.fixture
def made(tmp_path, liar):
    """Makes gateways."""
    harnesses = []

    def make(**settings):
        folder = tmp_path / str(len(harnesses))
        folder.mkdir()
        defaults = {"oidc_issuer": liar.url, "oidc_client_id": CLIENT, "oidc_client_secret": "hush"}
        harnesses.append(Harness(folder, **defaults | settings))
        return harnesses[-1]

    yield make
    for harness in harnesses:
        harness.close()


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
    query = begin(gateway, **(back or {}))
    liar.says(query["nonce"], **claims)
    return come_back(gateway, query["state"])


def forgiven(gateway):
    """Failures from before do not count."""
    gateway.backend.__dict__.pop("logins", None)


def refused(gateway, answer, status=401):
    """The text of a page that says why somebody is not signed in."""
    assert answer.status_code == status, answer.text
    assert "auth" not in gateway.client.cookies
    assert gateway.events_of(SessionOpened) == []
    return answer.text
