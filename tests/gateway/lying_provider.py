"""A provider of identities in this process that says what a test wants it to say, true or not."""

from __future__ import annotations

import base64
import contextlib
import hmac
import http.server
import json
import threading
import time
from urllib.parse import parse_qs, urlsplit

from joserfc import jws
from joserfc.jwk import RSAKey

CLIENT = "steadfast"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer(self.server.lies.get(self.path, self.server.truth.get(self.path)))

    def do_POST(self):
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.sent.append({name: values[0] for name, values in parse_qs(form).items()})
        self.server.headers.append(dict(self.headers))
        self._answer(self.server.lies.get(self.path, self.server.token))

    def _answer(self, reply):
        self.server.paths.append(self.path)
        status, body = (200, reply() if callable(reply) else reply) if reply is not None else (404, {})
        if isinstance(body, tuple):
            status, body = body
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.server.stops_half_way:
            self.wfile.write(text[: len(text) // 2])
            self.server.over.wait(30)
            return
        with contextlib.suppress(OSError):
            for at in range(0, len(text), 1 << 16):
                self.wfile.write(text[at : at + (1 << 16)])
                self.server.taken = at + (1 << 16)

    def log_message(self, *_):
        """Nothing."""


class LyingProvider:
    """It signs with `key`, unless a test says otherwise."""

    def __init__(self):
        self.server = server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.claims, self.header, self.more = {}, {"alg": "RS256", "kid": "one"}, {}
        self.sign = self._sign
        server.paths, server.sent, server.headers = [], [], []
        server.lies, server.taken, server.stops_half_way, server.over = {}, 0, False, threading.Event()
        server.token = self._token
        server.truth = {
            "/.well-known/openid-configuration": self.metadata,
            "/jwks": lambda: {"keys": [self.key.as_dict(private=False)]},
            "/userinfo": lambda: self.more,
        }
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        self._thread.start()

    def metadata(self):
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
        }

    def says(self, expected_nonce, **claims):
        """What the next ID token holds."""
        now = int(time.time())
        truth = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "s-1",
            "exp": now + 300,
            "iat": now,
            "nonce": expected_nonce,
        }
        all_claims = truth | {"preferred_username": "ann", "name": "Ann A."} | claims
        self.claims = {name: value for name, value in all_claims.items() if value is not None}

    def _token(self):
        return {"access_token": "a", "token_type": "Bearer", "id_token": self.sign()}

    def _sign(self):
        return self.signed_by(self.key)

    def signed_by(self, key, **header):
        return jws.serialize_compact(self.header | header, json.dumps(self.claims).encode(), key)

    def unsigned(self):
        return f"{_part({'alg': 'none'})}.{_part(self.claims)}."

    def signed_with_the_public_key(self):
        """As if that were a secret that both sides share."""
        signing_input = f"{_part({'alg': 'HS256', 'kid': 'one'})}.{_part(self.claims)}"
        signature = hmac.digest(self.key.as_pem(private=False), signing_input.encode(), "sha256")
        return f"{signing_input}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    def close(self):
        self.server.over.set()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def _part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def query_of(url):
    """The parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
