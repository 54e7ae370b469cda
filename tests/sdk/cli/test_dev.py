"""`det dev`: the token, and REST calls by curl."""

import pytest


@pytest.fixture
def curl(tmp_path, monkeypatch):
    """Replace curl by a program that writes its arguments, and the header it is given, to a file."""
    written = tmp_path / "called"
    program = tmp_path / "bin" / "curl"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexec > {written}\nfor word in "$@"; do\n'
        '  case "$word" in @*) cat "${word#@}";; *) echo "[$word]";; esac\ndone\nexit 22\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return written


def test_the_token_is_all_of_stdout(master, det):
    done = det("dev", "auth-token")
    assert (done.status, done.out) == (0, "t-1\n")


@pytest.mark.parametrize("path", ["/api/v1/me?x=1", "api/v1/me?x=1"])
def test_curl_is_run_as_the_user(master, det, curl, path):
    token = det("dev", "auth-token").out.strip()
    done = det("dev", "curl", path, "-X", "POST", "-d", '{"a": 1}')
    called = curl.read_text().splitlines()
    assert done.status == 22
    expected = [f"[{master.url}/api/v1/me?x=1]", "[-H]", f"Authorization: Bearer {token}", "[-s]"]
    assert called[:7] == [*expected, "[-X]", "[POST]", "[-d]"]


def test_the_command_is_shown_without_the_token(master, det, curl):
    token = det("dev", "auth-token").out.strip()
    shown = det("dev", "curl", "-x", "/api/v1/me").out
    assert f'curl -H "Authorization: Bearer $(det dev auth-token)" {master.url}/api/v1/me -s' in shown
    assert token not in shown


def test_a_missing_curl_is_told(master, det, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = det("dev", "curl", "/api/v1/me")
    assert (done.status, "no program 'curl'" in done.err) == (1, True)
