"""Answers whose source ends early: the client learns that there is more, and nothing of ours has failed."""

from __future__ import annotations

import msgspec
import pytest

from det_contracts import queries
from det_contracts.problems import unavailable
from services.catalogue import resource_allocation
from services.people import tokens
from services.rest_routes.cluster import allocated
from tests.gateway import stories as story
from tests.gateway.wired import got

UUID = "4a1f0c9e-3b6d-4a51-8c37-0f6f5c1d2e3b"
LAST_CHUNK = b"0\r\n\r\n"


@pytest.fixture
def read_output(capfd, caplog):
    """All that the gateway says on its way."""
    return lambda: "".join(capfd.readouterr()) + caplog.text


def check(answer, output):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding: chunked" in head.lower()
    assert not body.endswith(LAST_CHUNK)
    assert "answer.broken_off" in output
    assert "Traceback" not in output, output[-3000:]


@pytest.mark.parametrize("claimed", [900_000, 10**12])
def test_a_checkpoint_that_is_larger_by_what_was_said_than_its_files(gateway, tmp_path, read_output, claimed):
    folder = tmp_path / "checkpoints" / UUID
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"weights" * 100_000)
    storage = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints")}
    gateway.apply(story.created(1, checkpoint_storage=storage), story.trial_created(1))
    fact = msgspec.structs.replace(story.stored(1, UUID, 10), resources={"model.pt": claimed})
    gateway.apply(fact)
    check(got(gateway, f"/checkpoints/{UUID}", b"Accept: application/x-tar\r\n"), read_output())


@pytest.fixture
def pages(gateway):
    """Asked for the reports of a trial, the metrics service answers these pages, and is away then."""
    gateway.apply(story.created(1), story.trial_created(1))
    left = []

    def reports(query):
        if not left:
            raise unavailable("metrics is away")
        return left.pop(0)

    gateway.peers.values[queries.Reports] = reports
    return left


EXPORT = "/api/v1/trials/1/metrics/export"
ROW = {
    "trial_id": 1,
    "run": 1,
    "group": "training",
    "archived": False,
    "steps_completed": 1,
    "at": 1.0,
    "metrics": {"loss": 1.0},
    "id": 1,
}


def test_an_export_whose_owner_goes_away(gateway, pages, read_output):
    pages.append({"rows": [ROW], "more": True})
    answer = got(gateway, EXPORT)
    assert b"training" in answer
    check(answer, read_output())


def test_an_export_whose_owner_is_away_does_not_begin(gateway, pages):
    assert got(gateway, EXPORT).startswith(b"HTTP/1.1 503")


RUNS = "/resources/allocation/raw?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2030-01-01T00:00:00Z"


@pytest.mark.parametrize("path", [f"/api/v1{RUNS}", RUNS])
def test_an_export_whose_user_is_signed_out(gateway, monkeypatch, read_output, path):
    for trial in (1, 2, 3):
        gateway.apply(story.created(trial), story.trial_created(trial, trial))
        gateway.apply(*story.running(trial, experiment_id=trial))
    monkeypatch.setattr(allocated, "RUNS_PER_PAGE", 1)
    shown, show = [], resource_allocation.held_runs

    def no_session(*_):
        raise tokens.BadToken("the session is over")

    def signed_out_meanwhile(*arguments):
        shown.append(show(*arguments))
        if len(shown) == 2:
            monkeypatch.setattr(tokens, "read", no_session)
        return shown[-1]

    monkeypatch.setattr(resource_allocation, "held_runs", signed_out_meanwhile)
    check(got(gateway, path), read_output())
    assert len(shown) == 2
