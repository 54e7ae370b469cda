"""The functions of the client, their one connection, and what is exported."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from determined import experimental
from determined.common.api import errors
from determined.common.api.errors import MasterNotFoundException
from determined.experimental import client
from determined.transport.token_store import TokenStore
from tests.sdk.fake_gateway import Status

CREATED = {"experiment": {"id": 7}, "config": {}, "warnings": []}


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("pass\n")
    return folder


def test_names_are_exported():
    wanted = (
        "Determined Checkpoint ExperimentReference TrialReference Model ModelVersion ModelOrderBy ModelSortBy"
    )
    wanted += " TrialOrderBy TrialSortBy Session client test_one_batch Experiment Trial"
    assert not [name for name in wanted.split() if not hasattr(experimental, name)]
    assert experimental.Experiment is experimental.ExperimentReference
    assert experimental.Trial is experimental.TrialReference


def names(kind):
    return " ".join(member.name for member in kind)


def test_enums_have_the_published_values():
    assert {state.value for state in client.ExperimentState} == {
        f"STATE_{state.name}" for state in client.ExperimentState
    }
    assert len(client.ExperimentState) == 17
    assert [(mode.name, mode.value) for mode in client.DownloadMode] == [
        ("DIRECT", "direct"),
        ("MASTER", "master"),
        ("AUTO", "auto"),
    ]
    assert client.TrialOrderBy.ASC is client.TrialOrderBy.ASCENDING
    assert client.ModelOrderBy.DESC is client.ModelOrderBy.DESCENDING
    assert names(client.TrialSortBy) == (
        "UNSPECIFIED ID START_TIME END_TIME STATE BEST_VALIDATION_METRIC LATEST_VALIDATION_METRIC "
        "BATCHES_PROCESSED DURATION RESTARTS CHECKPOINT_SIZE"
    )
    assert names(client.CheckpointSortBy) == "END_TIME STATE UUID BATCH_NUMBER"
    assert names(client.ModelSortBy) == (
        "UNSPECIFIED NAME DESCRIPTION CREATION_TIME LAST_UPDATED_TIME NUM_VERSIONS WORKSPACE"
    )
    assert names(client.CheckpointState) == "UNSPECIFIED ACTIVE COMPLETED ERROR DELETED PARTIALLY_DELETED"


def test_it_connects_at_the_first_use_and_once(master):
    assert repr(client.get_experiment(7)) == "Experiment(id=7)"
    assert repr(client.get_trial(3)) == "Trial(id=3)"
    assert len(master.calls_to("POST", "/api/v1/auth/login")) == 1
    assert {call.path for call in master.calls} <= {"/api/v1/auth/login", "/api/v1/me", "/info"}
    with pytest.raises(ValueError, match="before any other call"):
        client.login()


def test_a_second_login_is_refused(master):
    client.login(master.url)
    with pytest.raises(ValueError, match="once"):
        client.login(master.url)


def test_login_as_somebody(master):
    client.login(user="ann", password="secret")
    assert client.get_session_username() == "ann"
    (call,) = master.calls_to("POST", "/api/v1/auth/login")
    assert call.json["username"] == "ann"


def test_scripts_take_their_session_from_the_connection(master):
    """Custom searches and tools for users do so, since 0.25 keeps it nowhere else."""
    assert client._determined is None
    client.login(user="ann", password="secret")
    master.answer("POST", "/api/v1/groups/search", {"groups": []})
    session = client._determined._session.with_retry(0)
    answer = session.post("api/v1/groups/search", json={"limit": 500}, params={"a": 1})
    assert answer.json() == {"groups": []}
    (call,) = master.calls_to("POST", "/api/v1/groups/search")
    assert call.json == {"limit": 500}
    assert call.headers["Authorization"] == f"Bearer {client._determined._speaking.token}"


def test_a_wrong_password(master):
    master.answer("POST", "/api/v1/auth/login", Status(401, {"error": {"error": "wrong"}}))
    with pytest.raises(errors.UnauthenticatedException):
        client.login(user="ann", password="wrong")


def test_without_certificate_check(tls_gateway, monkeypatch, client_home):
    monkeypatch.setattr("determined.experimental._client_connection._determined", None)
    with pytest.raises(errors.UntrustedCertificate):
        client.Determined(tls_gateway.url)
    assert client.Determined(tls_gateway.url, noverify=True).get_session_username() == "determined"


def test_with_a_certificate_and_its_name(tls_gateway, tmp_path, client_home):
    url = tls_gateway.url
    assert client.Determined(url, cert_path=str(tmp_path / "cert.pem")).get_session_username()
    named = client.Determined(url, cert_path=str(tmp_path / "cert.pem"), cert_name="cluster.test")
    assert named.get_session_username() == "determined"


@pytest.mark.parametrize("options", [{}, {"noverify": True}])
def test_a_certificate_that_is_not_there_is_named_at_once(master, options):
    with pytest.raises(FileNotFoundError, match=r"/not/there\.pem"):
        client.login(cert_path="/not/there.pem", **options)
    assert master.calls == []


def test_logout_without_connection_warns_only(master, caplog):
    with caplog.at_level(logging.WARNING):
        client.logout()
    assert "no login" in caplog.text
    assert master.calls == []


def test_logout_deletes_the_token(master):
    master.answer("POST", "/api/v1/auth/logout", {})
    client.login()
    client.logout()
    assert len(master.calls_to("POST", "/api/v1/auth/logout")) == 1
    assert TokenStore(master.url).users() == []


def test_logging_out_twice_warns_only(master, caplog):
    """As in 0.25: scripts that clean up may do so more than once."""
    master.answer("POST", "/api/v1/auth/logout", {})
    client.login()
    client.logout()
    master.answer("POST", "/api/v1/auth/logout", Status(401, {"message": "token invalid"}))
    with caplog.at_level(logging.WARNING):
        client.logout()
    assert "has ended already" in caplog.text


def test_create_experiment_from_a_dict(master, code):
    master.answer("POST", "/api/v1/experiments", CREATED)
    assert client.create_experiment({"name": "x", "lr": 1e-3}, code).id == 7
    (call,) = master.calls_to("POST", "/api/v1/experiments")
    assert call.json["activate"] is True
    assert "name: x" in call.json["config"]
    assert [item["path"] for item in call.json["modelDefinition"]] == ["train.py"]
    assert call.headers["Idempotency-Key"]


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_create_experiment_from_a_file_sends_it_as_written(master, code, tmp_path, kind):
    text = "# mine\nname: x\n"
    (tmp_path / "c.yaml").write_text(text)
    (tmp_path / "extra.txt").write_text("more")
    master.answer("POST", "/api/v1/experiments", CREATED)
    client.create_experiment(kind(tmp_path / "c.yaml"), kind(code), [kind(tmp_path / "extra.txt")])
    body = master.calls_to("POST", "/api/v1/experiments")[0].json
    assert body["config"] == text
    assert {item["path"] for item in body["modelDefinition"]} == {"train.py", "extra.txt"}


def test_create_experiment_logs_warnings(master, code, caplog):
    master.answer(
        "POST",
        "/api/v1/experiments",
        {**CREATED, "warnings": ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]},
    )
    with caplog.at_level(logging.WARNING):
        client.create_experiment({"name": "x"}, code)
    assert "more slots" in caplog.text


@pytest.mark.parametrize(("config", "folder"), [(7, "."), (None, "."), ({}, 7)])
def test_create_experiment_refuses_other_kinds(master, config, folder):
    with pytest.raises(ValueError, match="must be a"):
        client.create_experiment(config, folder)


def test_create_experiment_refuses_a_list(master, code, tmp_path):
    (tmp_path / "c.yaml").write_text("- 1\n")
    with pytest.raises(ValueError, match="mapping of fields"):
        client.create_experiment(tmp_path / "c.yaml", code)


def test_import_is_light():
    heavy = ["torch", "nats", "minio", "requests", "numpy", "yaml", "rich"]
    script = f"import sys, determined.experimental; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("named", [True, False])
def test_a_script_that_names_no_master_is_told_how_to(client_home, monkeypatch, named):
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    monkeypatch.setenv("DET_RETRY_CONFIG", '{"total": 0}')
    with pytest.raises(MasterNotFoundException) as caught:
        client.Determined("http://127.0.0.1:1" if named else None)
    advice = "; if yours is elsewhere, set DET_MASTER or pass client.Determined(master=...)"
    assert str(caught.value) == (
        "no answer from the master at http://127.0.0.1:1: [Errno 111] Connection refused"
        + ("" if named else advice)
    )
