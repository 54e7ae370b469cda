"""Webhooks of a real cluster: what is told arrives, whoever is slow and whoever is killed meanwhile."""

import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.fixtures.local_cluster import wait_for

CONFIG = """
name: webhooks
entrypoint: python3 -c "print(1)"
searcher: {name: single, metric: loss, max_length: {batches: 1}}
resources: {slots_per_trial: 2}
"""


class Receiver(ThreadingHTTPServer):
    """Keeps what it was sent; one that holds back answers nobody before it is released."""

    daemon_threads = True

    def __init__(self, holds_back=False):
        self.got = []
        self.released = threading.Event()
        if not holds_back:
            self.released.set()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook"

    def documents(self):
        return [json.loads(body) for _, body in self.got]

    def attempts(self, state):
        return [
            document["event_id"]
            for document in self.documents()
            if document.get("condition") == {"state": state}
        ]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.released.wait(60)
        try:
            self.send_response(204)
            self.end_headers()
        except OSError:
            return  # The one who asked was killed.

    def log_message(self, *args):
        pass


@pytest.fixture
def receiver():
    """Makes receivers."""
    made = []

    def make(**options):
        server = Receiver(**options)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        made.append((server, thread))
        return server

    yield make
    for server, thread in made:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def hook(cluster, url, kind, **more):
    """The id of a webhook that is told of experiments that were canceled."""
    trigger = {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "CANCELED"}}
    body = {"url": url, "webhookType": f"WEBHOOK_TYPE_{kind}", "triggers": [trigger]} | more
    return cluster.api("POST", "webhooks", user="admin", json=body)["webhook"]["id"]


def has_arrived(cluster, id):
    (delivery,) = cluster.api("GET", f"webhooks/{id}/deliveries", user="admin")["deliveries"]
    return delivery["state"] == "DELIVERED"


def test_a_delivery_outlives_the_service_and_a_slow_receiver_delays_nobody(cluster, receiver, tmp_path):
    slow, quick = receiver(holds_back=True), receiver()
    hooks = [hook(cluster, slow.url, "DEFAULT", signingKey="our key"), hook(cluster, quick.url, "SLACK")]
    try:
        (tmp_path / "config.yaml").write_text(CONFIG)
        experiment = cluster.create("config.yaml", tmp_path, "--paused")
        cluster.api("POST", f"experiments/{experiment}/cancel")
        wait_for(lambda: slow.attempts("CANCELED"), 60, "the slow receiver to be asked")
        wait_for(lambda: quick.got, 60, "the quick receiver to be told meanwhile")
        # While an attempt is under way nothing is known of it.
        cluster.kill("webhooks")
        wait_for(lambda: len(slow.attempts("CANCELED")) > 1, 60, "the attempt to be made again")
        slow.released.set()
        wait_for(lambda: has_arrived(cluster, hooks[0]), 60, "it to have arrived")
        assert len(set(slow.attempts("CANCELED"))) == 1, "each attempt has the same id"
        check(slow.got[0], b"our key", experiment)
        assert f"Experiment {experiment} (webhooks)" in quick.documents()[0]["text"]
        assert cluster.api("POST", f"webhooks/{hooks[0]}/test", user="admin") == {"completed": True}
        assert slow.documents()[-1]["event_type"] == "TEST"
    finally:
        for id in hooks:
            cluster.api("DELETE", f"webhooks/{id}", user="admin")


def check(got, key, experiment):
    """As a receiver would: the signature is of this body, and the body of this experiment."""
    headers, body = got
    at = headers["X-Determined-AI-Signature-Timestamp"].encode()
    expected = hmac.new(key, at + b"," + body, hashlib.sha256).hexdigest()
    assert headers["X-Determined-AI-Signature"] == expected
    answer = json.loads(body)["event_data"]["experiment"]
    assert (answer["id"], answer["name"], answer["slots_per_trial"]) == (experiment, "webhooks", 2)
    assert headers["Steadfast-Delivery"] == json.loads(body)["event_id"]
