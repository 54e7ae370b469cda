"""Credentials that a worker makes: its own, where it has the key, and those of scripts, in time."""

import asyncio
import os
from types import SimpleNamespace

import msgspec
import pytest

from det_contracts.events.scheduler import AllocationAssigned, Part
from det_contracts.orders import Briefing, Gang, TrialFacts
from services.kit import base64url
from services.kit.credentials import Authority
from worker import credentials
from worker.run_setup import Preparer
from worker.settings import WorkerSettings
from worker.task_files import CREDENTIALS

AUTHORITY = Authority.create()


def claims(text):
    token = text.split("\n")[1]
    return msgspec.json.decode(base64url.decode(token.split(".")[1]))


@pytest.fixture
def keys(tmp_path):
    trial, worker = tmp_path / "trial-signing.json", tmp_path / "worker-signing.json"
    for path, account, seed in (
        (trial, AUTHORITY.scripts, AUTHORITY.trial_signing_seed),
        (worker, AUTHORITY.workers, AUTHORITY.worker_signing_seed),
    ):
        path.write_bytes(msgspec.json.encode({"account": account, "seed": seed}))
    return SimpleNamespace(trial=trial, worker=worker)


def briefing(trial_id=7):
    assigned = AllocationAssigned(
        allocation_id="1.r.1",
        task_id="1.r",
        kind="TRIAL",
        parts=(Part("w", (0,), 0),),
        trial_id=trial_id,
        experiment_id=1,
        run=1,
        reason="",
    )
    facts = TrialFacts(trial_id=trial_id, experiment_id=1, run=1, seed=0, hparams={}, steps_completed=0)
    return Briefing(assigned=assigned, user="ann", config={}, gang=Gang((), ()), trial=facts)


def test_a_worker_makes_its_own_under_its_id_where_none_are_named(tmp_path, keys):
    home = tmp_path / "home"
    home.mkdir()
    mine = credentials.add_own_credentials(
        WorkerSettings(worker_id="gpu-3", worker_home=home, worker_signing=keys.worker)
    )
    own_claims = claims(mine.nats_credentials.read_text())
    assert (own_claims["name"], own_claims["nats"]["issuer_account"]) == ("gpu-3", AUTHORITY.workers)
    assert mine.nats_credentials.stat().st_mode & 0o077 == 0
    named = WorkerSettings(worker_id="gpu-3", nats_credentials=tmp_path / "x", worker_signing=keys.worker)
    assert credentials.add_own_credentials(named) is named


def test_those_of_scripts_that_run_are_renewed_at_once_and_at_half_of_their_life(tmp_path, keys, monkeypatch):
    settings = WorkerSettings(
        worker_id="w", worker_home=tmp_path, trial_signing=keys.trial, script_credentials_s=100.0
    )
    preparer = Preparer(settings, None, tmp_path / "contexts")
    waits, renewed = [], []

    def run(name, **more):
        order_fields = {"briefing": briefing(), "started_at": 1.0} | more
        (tmp_path / name / "info").mkdir(parents=True)
        return SimpleNamespace(
            id=name, folder=tmp_path / name, order=SimpleNamespace(**order_fields), done=asyncio.Event()
        )

    runs = {name: run(name, **more) for name, more in (("a", {}), ("new", {"started_at": 0.0}))}

    async def sleep(seconds):
        waits.append(seconds)
        renewed.append((tmp_path / "a" / "info" / CREDENTIALS).read_text())
        if len(waits) == 2:
            raise asyncio.CancelledError

    monkeypatch.setattr(credentials, "asyncio", SimpleNamespace(sleep=sleep, to_thread=asyncio.to_thread))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(credentials.renew(settings, preparer, runs))
    assert waits == [50.0, 50.0]
    first, second = map(claims, renewed)
    assert first["sub"] != second["sub"]
    assert first["exp"] - first["iat"] in (99, 100, 101)
    assert (first["name"], first["nats"]["issuer_account"]) == ("7", AUTHORITY.scripts)
    assert not os.listdir(tmp_path / "new" / "info")


def test_tasks_that_run_get_the_authorities_of_now(tmp_path, keys):
    """Also where credentials last for ever, and tasks that are no script's."""
    authority = tmp_path / "ca.pem"
    settings = WorkerSettings(
        worker_id="w",
        worker_home=tmp_path,
        trial_signing=keys.trial,
        tls_ca=authority,
        nats_url="tls://broker:4222",
        master_url="https://master:8080",
        script_credentials_s=0.0,
    )
    preparer = Preparer(settings, None, tmp_path / "contexts")
    (tmp_path / "run" / "info").mkdir(parents=True)
    (tmp_path / "shell" / "info").mkdir(parents=True)
    shell = msgspec.structs.replace(briefing(), trial=None)
    for text in ("first", "second"):
        authority.write_text(text)
        preparer.renew(tmp_path / "run", briefing())
        preparer.renew(tmp_path / "shell", shell)
        bus = msgspec.json.decode((tmp_path / "run" / "info" / "bus.json").read_bytes())
        assert (bus["ca"], bus["urls"]) == (text, ["tls://broker:4222"])
        for run in ("run", "shell"):
            assert (tmp_path / run / "info" / "master.pem").read_text() == text
    assert os.listdir(tmp_path / "shell" / "info") == ["master.pem"]
