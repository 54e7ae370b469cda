"""An hour in which everything goes wrong that can, while searches run: they end as if nothing had happened.

`STEADFAST_BAD_DAY_MINUTES` says how long it takes; the seed is printed first.
"""

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter

import pytest
import requests

from determined import context
from tests.fixtures.counting_search import operations, outcome, write_counting_search
from tests.fixtures.local_cluster import TERMINAL, wait_for
from tests.fixtures.reading import read_control

MINUTES = float(os.environ.get("STEADFAST_BAD_DAY_MINUTES", "60"))
DISK_MEGABYTES = 768
pytestmark = [
    pytest.mark.timeout(60 * MINUTES + 1800),
    pytest.mark.expected_log("", "everything is broken on purpose; what counts is how it ends"),
]
HANG_UPS = (
    "live?topics=experiments",
    "live?topics=experiments,trials",
    "experiments?limit=100",
    "trials/1/logs?follow=true",
    "experiments/1/validation-history",
    "master/logs?follow=true",
)


class BadDay:
    """What happens to a cluster, by chance."""

    def __init__(self, cluster, disk, seed):
        self.cluster = cluster
        self.disk = disk
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.happened = Counter()
        self.errors = []

    def _repeat(self, work):
        while not self.over.is_set():
            try:
                work()
            except Exception as error:
                self.errors.append(error)
                return

    @contextlib.contextmanager
    def going_on(self):
        threads = [
            threading.Thread(target=self._repeat, args=(work,))
            for work in (self.disturb, self.hang_up, self.hang_up, self.ask_for_too_much)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in threads:
                thread.join()

    # -- the cluster's parts

    def disturb(self):
        what = self.chance.choice([self.kill, self.kill, self.pause, self.pause, self.fill])
        self.happened[what.__name__] += 1
        what()
        self.over.wait(self.chance.uniform(0.5, 8))

    def kill(self):
        self.cluster.kill(self.chance.choice(self.cluster.names()))

    def pause(self):
        """For longer than a lease, for less than a worker may be silent."""
        pid = self.cluster.pid(self.chance.choice(self.cluster.names()))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self.over.wait(self.chance.uniform(0.2, 6))
            os.kill(pid, signal.SIGCONT)

    def fill(self):
        """The broker's disk is full, and later it is not."""
        if self.chance.random() < 0.7:
            return
        self.happened["full disk"] += 1
        self.disk.fill()
        self.over.wait(self.chance.uniform(2, 20))
        self.disk.make_room()

    # -- its users

    def hang_up(self):
        """Ask for something long, and leave."""
        self.happened["hang-ups"] += 1
        path = self.chance.choice(HANG_UPS)
        token = self.cluster._token
        door = ("127.0.0.1", self.cluster.plan.port)
        with contextlib.suppress(OSError), socket.create_connection(door, 5) as line:
            line.sendall(
                f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1\r\n"
                f"Authorization: Bearer {token}\r\n\r\n".encode()
            )
            self.over.wait(self.chance.uniform(0.001, 0.06))
        self.over.wait(0.05)

    def ask_for_too_much(self):
        """Bodies of any size, whole and cut off."""
        self.happened["large requests"] += 1
        size = self.chance.choice([10_000, 3_000_000, 8_388_433, 20_000_000])
        body = json.dumps({"config": "name: " + "x" * size, "activate": False}).encode()
        with contextlib.suppress(requests.RequestException):
            requests.post(
                f"{self.cluster.address}/api/v1/experiments",
                data=body,
                headers={"Authorization": f"Bearer {self.cluster._token}"},
                timeout=60,
            )
        self.over.wait(self.chance.uniform(0.5, 3))


def test_an_hour_of_everything_changes_nothing(local_cluster, small_disk, tmp_path):
    model = write_counting_search(tmp_path / "model")
    seed = int(os.environ.get("STEADFAST_BAD_DAY_SEED", time.time()))
    print(f"seed {seed}")
    calm = local_cluster()
    id = calm.create("config.yaml", model)
    assert calm.wait_for_end(id)["state"] == "STATE_COMPLETED"
    expected = outcome(calm, id), operations(calm, id)
    calm.down()

    disk = small_disk(DISK_MEGABYTES)
    home = tmp_path / "cluster1" / "steadfast" / "test"
    home.mkdir(parents=True)
    (home / "broker").symlink_to(disk.path)
    cluster = local_cluster()
    assert cluster.home.path == home
    cluster.get("me")
    day = BadDay(cluster, disk, seed)
    searches = []
    end = time.monotonic() + 60 * MINUTES
    with day.going_on():
        while time.monotonic() < end:
            searches.append(begun(cluster, model))
            wait_for(lambda: ended(cluster, searches[-1]), 900, f"search {searches[-1]} to end")
    assert not day.errors
    wait_for(lambda: healthy(cluster), 120, "the cluster to be well")
    searches.append(begun(cluster, model))
    wait_for(lambda: ended(cluster, searches[-1]), 300, "a search after all that")
    print(dict(day.happened), len(searches), "searches")
    events = read_control(cluster)
    for id in searches:
        assert cluster.experiment(id)["state"] == "STATE_COMPLETED"
        assert (outcome(cluster, id), operations(cluster, id, events)) == expected


def begun(cluster, model):
    """The id of a search that was submitted, once, however often one had to ask."""
    key = {"Idempotency-Key": os.urandom(8).hex()}
    body = {
        "config": (model / "config.yaml").read_text(),
        "activate": True,
        "modelDefinition": context.pack(model, []),
    }
    answer = {}

    def accepted():
        # No space is told with 507; `api` itself asks again where nobody answers, for a while.
        with contextlib.suppress(requests.RequestException, AssertionError):
            answer.update(cluster.api("POST", "experiments", json=body, headers=key))
        return answer

    wait_for(accepted, 300, "a search to be accepted")
    return answer["experiment"]["id"]


def ended(cluster, id):
    with contextlib.suppress(requests.RequestException, AssertionError):
        return cluster.experiment(id)["state"] in TERMINAL
    return False


def healthy(cluster):
    with contextlib.suppress(requests.RequestException):
        return requests.get(f"{cluster.address}/health", timeout=60).json()["status"] == "up"
    return False
