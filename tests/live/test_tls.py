"""A cluster with TLS everywhere, as `cluster-up --tls` makes it."""

import socket
import ssl

import pytest
import requests

from services.local import status
from tests.fixtures.local_cluster import LocalCluster, wait_for

TRAIN = """
import logging
import determined as det
from determined.experimental import client

with det.core.init() as core_context:
    for op in core_context.searcher.operations():
        core_context.train.report_validation_metrics(steps_completed=op.length, metrics={"loss": 1.0})
        op.report_completed(1.0)
print("asked by", client.whoami().username)
"""
CONFIG = """
name: secured
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: {batches: 3}}
max_restarts: 0
"""


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    cluster = LocalCluster(tmp_path_factory.mktemp("secured"), tls=True).up()
    yield cluster
    cluster.down()


def test_command_script_and_client_work_and_say_nothing_of_it(secured, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert secured.address.startswith("https://")
    id = secured.create("config.yaml", tmp_path)
    assert secured.wait_for_end(id)["state"] == "STATE_COMPLETED"
    trial = secured.first_trial(id)
    lines = secured.logs(trial)
    assert "asked by determined" in lines
    assert not [line for line in lines if "ssl" in line.lower()], lines
    assert secured.get(f"trials/{trial}")["trial"]["totalBatchesProcessed"] == 3


def test_nothing_is_answered_in_the_clear(secured):
    plain = secured.address.replace("https://", "http://")
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{plain}/info", timeout=60)
    ports = secured.home.read("ports.json")
    with socket.create_connection(("127.0.0.1", ports["broker"]), timeout=60) as broker:
        # One that speaks plainly greets whoever comes.
        broker.sendall(b"PING\r\n")
        assert b"INFO" not in broker.recv(4096)


def test_its_state_is_shown(secured, capsys):
    wait_for(
        lambda: not any(program.problems for program in status.program_statuses(secured.home)),
        30,
        "all of it to be well",
    )
    assert status.show(secured.home, secured.plan) == status.HEALTHY
    assert ": 1 worker\n" in capsys.readouterr().out


def test_who_does_not_know_the_authority_is_warned(secured):
    port = secured.plan.port
    context = ssl.create_default_context()
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_the_cookie_is_for_tls_alone(secured):
    session = requests.Session()
    session.trust_env = False
    with session:
        answer = session.post(
            f"{secured.address}/api/v1/auth/login",
            json={"username": "admin", "password": ""},
            verify=str(secured.home.authority(secured.plan)),
            timeout=60,
        )
    assert "secure" in answer.headers["set-cookie"].lower()
