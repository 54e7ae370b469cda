"""What a run's log does not show, however a script prints it."""

import json
import os

import pytest

from det_contracts.page_key import page_key
from services.kit import files
from worker import hidden_values, permanent_failure
from worker.output_spool import SpoolReader, last_lines
from worker.shim.spool import STDERR, STDOUT, Spool

TOKEN = "task.eyJhIjoiMSJ9.c7Lb09vtaxB-509n6l"
TOKENS = TOKEN, TOKEN + "-second"
VARIABLES = {"DET_SESSION_TOKEN": TOKEN, "DET_USER_TOKEN": TOKEN + "-second", "HOME": "/home/somebody"}


@pytest.fixture
def printed(tmp_path):
    """What a log shows of these lines, of a run with this configuration."""

    def show(*lines, config=None, stream=STDOUT):
        hidden_values.save(tmp_path, config or {}, TOKENS)
        (tmp_path / "spool").mkdir(exist_ok=True)
        Spool(str(tmp_path / "spool")).append(stream, list(lines))
        batch = SpoolReader(tmp_path).read()
        again = SpoolReader(tmp_path).read()
        assert again == batch, "a batch that is read twice is the same"
        return [line.text for line in batch.lines]

    return show


def test_a_script_that_prints_its_environment_shows_no_token(printed):
    shown = printed(repr(VARIABLES).encode(), f"INFO: Bearer {TOKEN}".encode(), b"\xff" + TOKEN.encode())
    assert not any(TOKEN in line for line in shown)
    assert "'HOME': '/home/somebody'" in shown[0]
    assert shown[1:] == ["Bearer ********", "\N{REPLACEMENT CHARACTER}********"]


def test_a_notebook_that_prints_its_environment_shows_no_key(printed):
    """Who has it acts as the owner of the notebook, if they reach its port."""
    assert printed(f"JUPYTER_TOKEN={page_key(TOKEN)}".encode()) == ["JUPYTER_TOKEN=********"]


def test_secrets_of_the_configuration_are_hidden_line_by_line(printed):
    config = {
        "checkpoint_storage": {"type": "s3", "bucket": "plain-bucket", "secret_key": "storage-secret"},
        "environment": {
            "environment_variables": ["MY_TOKEN=hush-hush-hush", "MODE=plain-value"],
            "registry_auth": {"username": "ann", "password": "registry-secret"},
        },
        "shell": {"private_key": "-----BEGIN KEY-----\nfirst-line-of-it\nsecond-line-of-it\n"},
    }
    text = b"storage-secret hush-hush-hush registry-secret plain-value plain-bucket"
    shown = printed(text, b"first-line-of-it", b"second-line-of-it", config=config)
    assert shown == ["******** ******** ******** plain-value plain-bucket", "********", "********"]


def test_what_is_too_short_for_a_secret_is_shown(printed):
    config = {"environment": {"environment_variables": ["MY_KEY=1", "OTHER_KEY="]}}
    assert printed(b"step 1 of 11", config=config) == ["step 1 of 11"]


def test_the_cause_of_a_failure_shows_none_either(printed, tmp_path):
    printed(f"ModuleNotFoundError: No module named '{TOKEN}'".encode(), stream=STDERR)
    assert "********" in permanent_failure.cause(tmp_path, 1)
    assert not any(TOKEN in line.text for line in last_lines(tmp_path))


def test_only_the_workers_user_may_read_what_is_hidden(printed, tmp_path):
    printed(b"")
    path = tmp_path / hidden_values.FILE
    assert path.stat().st_mode & 0o077 == 0
    assert TOKEN in json.loads(path.read_text())


def test_no_start_waits_for_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "fsync", lambda _: pytest.fail("flushed"))
    hidden_values.save(tmp_path, {}, TOKENS)
    assert hidden_values.are_saved(tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 80, b"\xff", json.dumps(TOKENS).encode()[:60]],
    ids=["empty", "zeros", "no text", "a part"],
)
def test_output_that_outlives_what_it_must_not_show_is_kept_back(printed, tmp_path, content):
    """A power loss may leave the name of a file that was not flushed, without its content."""
    printed(f"ModuleNotFoundError: No module named '{TOKEN}'".encode(), stream=STDERR)
    (tmp_path / hidden_values.FILE).write_bytes(content)
    for read in (SpoolReader(tmp_path).read, lambda: last_lines(tmp_path)):
        with pytest.raises(OSError, match=hidden_values.LOST):
            read()
    assert permanent_failure.cause(tmp_path, 1) == ""
    # A run that has not started is prepared again.
    assert not hidden_values.are_saved(tmp_path)


def test_a_run_without_the_file_is_read_as_before(tmp_path):
    """As of workers of the version before."""
    os.mkdir(tmp_path / "spool")
    Spool(str(tmp_path / "spool")).append(STDOUT, [b"plain"])
    assert [line.text for line in SpoolReader(tmp_path).read().lines] == ["plain"]
    assert not hidden_values.are_saved(tmp_path)
