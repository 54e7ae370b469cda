"""Tools say who uses them, also where the host knows a number and no name."""

import argparse
import asyncio
import contextlib
import os

import pytest

from det_contracts import codec
from det_contracts.events import trial
from services.kit.bus import BusClient
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.os_user import os_user
from services.local import broker_command, reset_password
from services.local.home import Home
from services.local.skip import skip
from services.provisioner.engines.slurm import SlurmEngine
from services.provisioner.engines.slurm_script import SlurmSettings
from tests.fixtures.without_account import lose_account

ID = str(os.getuid())


@pytest.fixture(autouse=True)
def nameless(monkeypatch):
    lose_account(monkeypatch)


def test_a_user_without_an_account_is_its_number(monkeypatch):
    assert os_user() == ID
    monkeypatch.setenv("USER", "ann")
    assert os_user() == "ann"


def test_a_skipped_event_says_by_whom():
    async def work():
        log = MemoryLog()
        event = trial.Progressed(1, 1, 1.0)
        await log.append(Draft(codec.subject_of(event), codec.encode(event, id="x", actor="t", at=1.0), "x"))
        await skip(log, "toy", "CONTROL", 1, "bug 45")
        return codec.decode((await log.last("control.gateway.event.toy.skipped")).body, 1).actor

    assert asyncio.run(work()) == f"user:{ID} on the host"


def test_a_reset_password_says_by_whom(monkeypatch):
    commands = []

    @contextlib.asynccontextmanager
    async def connection_to(args):
        yield None

    async def command(self, command):
        commands.append(command)

    monkeypatch.setattr(broker_command, "connection_to", connection_to)
    monkeypatch.setattr(BusClient, "command", command)
    asyncio.run(reset_password._reset(argparse.Namespace(username="ann", admin=False), "a password"))
    assert [command.by for command in commands] == [f"'{ID}'"]


def test_slurm_is_asked_for_the_jobs_of_a_number(tmp_path, monkeypatch):
    squeue = tmp_path / "squeue"
    squeue.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    settings = SlurmSettings(partition="main")
    assert asyncio.run(SlurmEngine("gpu", 2, "c1", settings).list_workers()) == []
    assert f"--user={ID}" in (tmp_path / "words").read_text().split()


def test_a_cluster_of_a_user_without_a_home_says_what_to_set(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=f"user {ID} has no home directory on this host: set STEADFAST_HOME"):
        Home("determined")
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    assert Home("determined").path.is_relative_to(tmp_path)
