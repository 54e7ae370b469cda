"""What a container asks its master while it is prepared."""

import threading

from determined.exec import prep_container
from services.rest_routes.tasks import allocations
from tests.fixtures.own_time import set_time
from tests.sdk.fake_gateway import FakeGateway


def test_a_master_that_closes_the_connection_is_asked_again(monkeypatch):
    monkeypatch.setattr(prep_container, "ANSWER_S", 0.2)
    set_time(monkeypatch, prep_container, sleep=lambda seconds: None)
    gateway, over = FakeGateway(), threading.Event()
    gateway.answer("GET", "/where", lambda call: over.wait(60) and {}, {"rendezvousInfo": {}})
    environment = {"DET_MASTER": gateway.url, "DET_SESSION_TOKEN": "secret"}
    try:
        assert prep_container._ask(environment, "/where") == {"rendezvousInfo": {}}
    finally:
        over.set()
        gateway.close()


def test_the_master_answers_before_the_container_gives_up():
    assert prep_container.ANSWER_S > allocations.RENDEZVOUS_PATIENCE_S


def test_gpus_are_listed_by_index_also_where_there_are_more_than_ten(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    rows = "".join(f"{index}, GPU-{index}\\n" for index in (0, 1, 10, 11, 2))
    tool.write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert prep_container.visible_gpus() == ["GPU-0", "GPU-1", "GPU-2", "GPU-10", "GPU-11"]
