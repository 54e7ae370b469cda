"""Commands that work on a broker's streams say in one line that no broker answers, and do not wait long."""

import pytest

from services.kit.credentials import Authority
from services.local.broker_command import inbox_of
from tests.fixtures.ports import reserved_port
from tests.fixtures.service_processes import run_module

ARGUMENTS = {
    "skip": ["--position", "3", "--reason", "a test"],
    "remake": [],
    "reset_password": ["admin", "--password-file", __file__],
}


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_an_unreachable_broker_is_reported_in_one_line(name):
    url = f"nats://127.0.0.1:{reserved_port()}"
    ended = run_module(f"services.local.{name}", "--nats", url, *ARGUMENTS[name])
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"the broker does not answer: no connection to {url}: ")
    assert "Connect call failed" in line
    assert "once it does" in line
    assert not ended.stdout


def test_tools_are_answered_where_nobody_else_listens(tmp_path):
    authority, file = Authority.create(), tmp_path / "x.creds"
    for name, credentials in (("operator", authority.operator()), ("gateway", authority.service("gateway"))):
        file.write_text(credentials)
        assert inbox_of(file) == f"_INBOX.{name}"
    file.write_text("no such file")
    assert inbox_of(file) == inbox_of(None) == "_INBOX"


def test_a_password_that_nobody_types_is_reported_in_one_line():
    ended = run_module("services.local.reset_password", "--nats", "nats://127.0.0.1:1", "admin")
    assert ended.returncode == 1
    assert "nothing was changed. Without a terminal, use --password-file" in ended.stderr
    assert "Traceback" not in ended.stderr
