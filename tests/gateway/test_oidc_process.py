"""Signing in with a provider that somebody else wrote, over HTTP, in a browser's way and in that of `det`."""

import json
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import httpx
import pytest

from determined.cli import provider_login
from determined.cli.failure import Failure
from determined.transport.rest import Session
from services.kit import broker
from tests.gateway.running import Running, eventually

pytestmark = pytest.mark.live
ANN = {"sub": "s-1", "preferred_username": "ann", "name": "Ann", "groups": ["ops"]}


@pytest.fixture(scope="module")
def provider():
    """Its address."""
    held = broker.held_port()
    port = broker.port_of(held)
    held.close()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    process = subprocess.Popen(
        [*command, "--user-claims", json.dumps(ANN)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: httpx.get(f"{url}/jwks").is_success, "the provider")
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, provider):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STEADFAST_OIDC_ISSUER", provider)
        patch.setenv("STEADFAST_OIDC_CLIENT_ID", "steadfast")
        patch.setenv("STEADFAST_OIDC_CLIENT_SECRET", "hush")
        patch.setenv("STEADFAST_OIDC_ADMIN_GROUPS", "ops")
        running = Running(tmp_path_factory.mktemp("oidc")).start()
    yield running
    running.close()


def agree(address):
    """Be a person who says who they are at the provider; returns where the browser is sent."""
    with httpx.Client() as browser:
        answer = browser.post(address, data={"sub": "s-1"})
        return answer.headers["location"]


def test_a_browser_comes_back_with_a_session(gateway):
    with httpx.Client(base_url=gateway.client.base_url) as browser:
        answer = browser.get("/api/v1/auth/oidc/start", params={"return": "/det/models"})
        back = agree(answer.headers["location"])
        answer = browser.get(back)
        assert (answer.status_code, answer.headers["location"]) == (303, "/det/models"), answer.text
        me = browser.get("/api/v1/me").json()["user"]
        assert (me["username"], me["admin"]) == ("ann", True)
        # The code is used up, whoever brings it.
        assert browser.get(back).status_code == 401


def test_det_is_given_a_token(gateway, monkeypatch):
    session = Session(str(gateway.client.base_url))
    followed = []

    def open_browser(address):
        def follow():
            with httpx.Client() as browser:
                back = agree(browser.get(address).headers["location"])
                waiting = browser.get(back).headers["location"]
                here = urlsplit(waiting)
                # Somebody else on this machine brings something first.
                browser.get(f"{here.scheme}://{here.netloc}/?ticket=forged")
                followed.append(browser.get(waiting).text)

        threading.Thread(target=follow).start()

    monkeypatch.setattr(provider_login.webbrowser, "open", open_browser)
    name, token = provider_login.sign_in(session, within_s=60)
    assert name == "ann"
    answer = gateway.client.get("/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["user"]["username"] == "ann"
    eventually(lambda: followed, "the page that says so")


def test_det_gives_up_where_nobody_signs_in(gateway, monkeypatch):
    monkeypatch.setattr(provider_login.webbrowser, "open", lambda _: None)
    with pytest.raises(Failure, match="sign-in was not completed"):
        provider_login.sign_in(Session(str(gateway.client.base_url)), within_s=0.01)
