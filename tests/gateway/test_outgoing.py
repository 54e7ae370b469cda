"""A configuration that names an object store does not make the gateway ask whom its sender cannot ask."""

from __future__ import annotations

import contextlib
import http.server
import threading

import pytest

from det_contracts.problems import Refused
from det_contracts.roots import Roots
from services.kit.addresses import Addresses
from services.kit.storage import StorageRefused
from services.kit.storage import probe as probe_of_worker
from services.submission.probe import probe as probe_of_gateway
from tests.gateway import stories as story
from tests.gateway.harness import Harness

SECRET = "what only this network may read"
CONFIG = """
entrypoint: python3 train.py
searcher: {{name: single, metric: loss, max_length: 1}}
checkpoint_storage:
  {{type: s3, bucket: bucket, access_key: A, secret_key: S, endpoint_url: "{url}"}}
"""


class Inside(http.server.BaseHTTPRequestHandler):
    """Some service of the cluster's network, which would tell secrets."""

    def _answer(self):
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        for name, value in self.server.more.items():
            self.send_header(name, value)
        body = self.server.body
        more = 1 << 20 if self.server.slowly else 0
        self.send_header("Content-Length", str(len(body) + more))
        self.end_headers()
        with contextlib.suppress(OSError):
            for at in range(0, len(body), 1 << 14):
                self.wfile.write(body[at : at + (1 << 14)])
                self.server.taken = at
            while self.server.slowly and not self.server.over.wait(0.02):
                self.wfile.write(b" ")

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _answer

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def inside():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Inside)
    server.paths, server.status, server.more = [], 403, {}
    server.body, server.taken, server.slowly, server.over = SECRET.encode(), 0, False, threading.Event()
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def tried(gateway, url):
    body = {"config": CONFIG.format(url=url), "validateOnly": True}
    return gateway.refused(400, "POST", "/api/v1/experiments", body)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "127.1"])
def test_who_is_inside_is_not_asked(gateway, inside, name):
    message = tried(gateway, inside.url.replace("127.0.0.1", name))
    assert inside.paths == []
    assert SECRET not in message


def test_the_error_names_the_setting_that_would_allow_it(gateway, inside):
    assert "STEADFAST_REACHABLE" in tried(gateway, inside.url)


@pytest.fixture
def allowing(tmp_path, inside):
    """A gateway whose settings allow that service, and others like it."""
    harness = Harness(tmp_path, reachable="127.0.0.0/8")
    harness.log_in()
    yield harness
    harness.close()


@pytest.mark.parametrize("status", [200, 400, 403, 404, 500])
def test_an_answer_is_not_shown(allowing, inside, status):
    inside.status = status
    message = tried(allowing, inside.url)
    assert inside.paths
    assert SECRET not in message
    assert ("returns other content" if status == 200 else "does not answer as an S3 store does") in message


def test_an_oversized_answer_of_a_store_is_not_read(allowing, inside):
    inside.body = SECRET.encode() * 100_000
    message = tried(allowing, inside.url)
    assert "does not answer as an S3 store does" in message
    assert inside.taken < len(inside.body)


def test_a_store_that_says_it_slowly_is_left(allowing, inside, monkeypatch):
    monkeypatch.setattr("services.submission.probe.WITHIN_S", 0.2)
    inside.slowly = True
    assert "does not answer as an S3 store does" in tried(allowing, inside.url)
    assert allowing.backend.limits.probes.admission.active == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_led_further(allowing, inside, status):
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Inside)
    with other:
        other.paths, other.status, other.more, other.body = [], 200, {}, b""
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        inside.status, inside.more = (
            status,
            {"Location": f"http://127.0.0.1:{other.server_address[1]}/secret"},
        )
        tried(allowing, inside.url)
        other.shutdown()
        assert inside.paths
        assert other.paths == []


def test_a_download_asks_nobody_inside_either(gateway, inside):
    storage = {"type": "s3", "bucket": "bucket", "access_key": "A", "secret_key": "S"}
    uuid = "0b2f6f0e-6f0c-4a39-9a55-0d8ad7ad3a51"
    for id, more in enumerate(({}, {"access_key": None}), 1):
        storage |= {"endpoint_url": inside.url, **more}
        gateway.apply(story.created(id, checkpoint_storage=storage), story.trial_created(id, id))
        gateway.apply(story.stored(id, uuid[:-1] + str(id), 10, id))
        answer = gateway.send("GET", f"/checkpoints/{uuid[:-1]}{id}")
        assert (answer.status_code, SECRET in answer.text) == (404, False)
    assert inside.paths == []


class Endless(http.server.BaseHTTPRequestHandler):
    """A store that answers one kind of request without end, and does not say for how long."""

    def _answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_endless = self.command == self.server.endless
        self.send_response(self.server.status if is_endless else 200)
        self.send_header("ETag", '"x"')
        self.end_headers()
        with contextlib.suppress(OSError):
            while is_endless and self.server.sent < ENDLESS_BYTES:
                self.wfile.write(b" " * (1 << 20))
                self.server.sent += 1 << 20
                self.server.over.wait(self.server.pause_s)

    do_GET = do_PUT = do_DELETE = _answer

    def log_message(self, *_):
        """Nothing."""


ENDLESS_BYTES = 64 << 20


@pytest.fixture
def endless():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    server.sent, server.pause_s, server.over = 0, 0.0, threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    server.storage = {
        "type": "s3",
        "bucket": "bucket",
        "access_key": "A",
        "secret_key": "S",
        "endpoint_url": url,
    }
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def gateway_probe(storage):
    return probe_of_gateway(storage, None, Addresses(allowed="127.0.0.1/32"))


def worker_probe(storage):
    return probe_of_worker(storage, Roots())


PROBES = pytest.mark.parametrize("probe", [gateway_probe, worker_probe])


@PROBES
@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
def test_an_answer_without_end_is_not_read(endless, probe, method, status):
    """It would fill the memory of the gateway, or of a worker and with it of what runs there."""
    endless.endless, endless.status = method, status
    with pytest.raises((Refused, StorageRefused)):
        probe(endless.storage)
    assert endless.sent < ENDLESS_BYTES


@PROBES
def test_an_answer_that_comes_slowly_is_left(endless, probe, monkeypatch):
    for place in ("services.submission.probe", "services.kit.storage"):
        monkeypatch.setattr(f"{place}.WITHIN_S", 0.3)
    endless.endless, endless.status, endless.pause_s = "PUT", 200, 2.0
    endless.sent = ENDLESS_BYTES - (10 << 20)
    with pytest.raises((Refused, StorageRefused)):
        probe(endless.storage)
    assert endless.sent < ENDLESS_BYTES
