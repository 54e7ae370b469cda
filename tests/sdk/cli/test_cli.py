from __future__ import annotations

import re
import subprocess
import sys

import pytest

from determined.__version__ import __version__
from determined.cli import cli, grammar, instead, version
from tests.fixtures.without_account import lose_account
from tests.sdk.fake_gateway import Status

EXPERIMENTS = "/api/v1/experiments"
EMPTY = {"experiments": [], "pagination": {"total": 0}}


@pytest.mark.parametrize("words", [(), ("help",), ("-h",), ("--help",)])
def test_help_names_every_noun_and_succeeds(det, words):
    result = det(*words)
    assert result.status == 0
    assert "global options" in result.out
    for noun in ("agent, a", "checkpoint, c", "experiment, e", "slot, s", "trial, t", "user, u", "version"):
        assert f"  {noun} " in result.out


@pytest.mark.parametrize(
    "words", [("e", "help"), ("e", "-h"), ("help", "experiment"), ("-h", "e"), ("e", "--help")]
)
def test_help_of_a_noun_names_its_verbs(det, words):
    result = det(*words)
    assert result.status == 0
    for verb in ("create", "list, ls", "list-trials, lt", "list-checkpoints, lc", "wait"):
        assert f"  {verb} " in result.out


@pytest.mark.parametrize(
    "words", [("e", "create", "-h"), ("help", "e", "create"), ("e", "create", "--follow", "--help")]
)
def test_help_of_a_verb_names_its_options(det, words):
    result = det(*words)
    assert result.status == 0
    assert "usage: det experiment create" in result.out
    assert "--follow-first-trial" in result.out


def test_a_noun_without_verb_and_default_shows_help(det):
    assert "usage: det deploy local" in det("d", "local").out
    assert det("trial").status == 0


@pytest.mark.parametrize("option", ["-v", "--version", "--vers"])
def test_version_needs_no_master(det, option):
    assert det(option) == (0, f"det {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "det: there is no command 'nonsense'; choose from agent"),
        (["exp", "list"], "there is no command 'exp'; did you mean 'det experiment'?"),
        (["experimnet", "list"], "there is no command 'experimnet'; did you mean 'det experiment'?"),
        (["activate", "1"], "did you mean 'det experiment activate' or 'det user activate'?"),
        (["cluster-up"], "did you mean 'det deploy local cluster-up'?"),
        (["whoami"], "did you mean 'det user whoami'?"),
        (
            ["e", "continue", "7"],
            "det experiment create CONFIG DIR --config searcher.source_trial_id=TRIAL_ID",
        ),
        (["trial", "list"], "det trial: there is no command 'list'; use det experiment list-trials ID"),
        (["logs", "7"], "det: there is no command 'logs'; use det trial logs TRIAL_ID"),
        (["ls"], "use det experiment list"),
        (["e", "destroy"], "det experiment: there is no command 'destroy'"),
        (["trial", "--csv"], "det trial: a command must come before '--csv'"),
        (["e", "wait"], "experiment_id"),
        (["e", "wait", "one"], "invalid int value: 'one'"),
        (["e", "list", "--bogus"], "unrecognized arguments: --bogus"),
        (["--bogus", "e"], "--bogus"),
        (["e", "create", "a", "b", "-f", "--paused"], "not allowed with"),
    ],
)
def test_wrong_usage_is_status_2(det, words, message):
    result = det(*words)
    assert result.status == 2
    assert message in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    "words", [("e",), ("experiment",), ("e", "ls"), ("experiment", "list"), ("e", "--csv")]
)
def test_a_noun_means_its_default_verb(master, det, words):
    master.answer("GET", EXPERIMENTS, EMPTY)
    assert det(*words).status == 0
    assert master.calls_to("GET", EXPERIMENTS)


def test_long_options_may_be_abbreviated_and_mixed_with_positionals(master, det, tmp_path):
    (tmp_path / "c.yaml").write_text("name: x")
    (tmp_path / "model").mkdir()
    master.answer("POST", EXPERIMENTS, {"experiment": {"id": 4}})
    result = det(
        "e", "create", "--pau", tmp_path / "c.yaml", "--proj", "3", tmp_path / "model", "--conf", "a=1"
    )
    assert result.status == 0
    assert master.calls[-1].json["activate"] is False
    assert master.calls[-1].json["projectId"] == 3


def test_the_master_of_the_option_comes_first(gateway, det, monkeypatch):
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    gateway.answer("GET", EXPERIMENTS, EMPTY)
    assert det("-m", gateway.url, "e", "list").status == 0
    assert det("--mas", gateway.url, "e", "list").status == 0


def test_an_address_that_is_none(det):
    result = det("-m", "ftp://x", "e", "list")
    assert result == (
        1,
        "",
        "Failed to list experiments: 'ftp://x' is not a master address; use HOST:PORT or http(s)://HOST:PORT\n",
    )


def test_no_master_is_hinted_at_then_it_fails(det, monkeypatch):
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    result = det("e", "list")
    assert result.status == 1
    assert result.out == ""
    hint, failure = result.err.splitlines()
    for word in ("http://127.0.0.1:1", "DET_MASTER", "-m"):
        assert word in hint
    assert failure.startswith("Failed to list experiments: no answer from the master at http://127.0.0.1:1")


@pytest.mark.parametrize(("version", "word"), [("0.26.1", "older"), ("0.24.0", "newer")])
def test_another_version_of_the_master_is_warned_of(master, det, version, word):
    master.answer("GET", "/info", {"version": version})
    master.answer("GET", EXPERIMENTS, EMPTY)
    result = det("e", "list")
    assert result.status == 0
    assert f"is {word} than the master ({version})" in result.err


def test_the_same_release_is_not_warned_of(master, det):
    master.answer("GET", "/info", {"version": __version__.split("+")[0]})
    master.answer("GET", EXPERIMENTS, EMPTY)
    assert det("e", "list").err == ""


def test_something_else_at_the_address(master, det):
    master.answer("GET", "/info", "<html>")
    master.answer("POST", "/api/v1/auth/login", "<html>")
    result = det("e", "list")
    assert result.status == 1
    assert "is this a master?" in result.err


def test_the_page_of_another_server_is_not_printed(master, det):
    """A page of many lines hid that the address is wrong."""
    page = "<!DOCTYPE HTML>\n<html lang='en'>\n<p>Error code: 501</p>\n</html>"
    master.answer("GET", "/info", page)
    master.answer("POST", "/api/v1/auth/login", Status(501, page))
    warning, failure = det("e", "list").err.splitlines()
    assert "answers, but not like a master" in warning
    assert "without a path" in warning
    assert failure == "Failed to list experiments: a web page (status 501 Not Implemented)"


def test_https_to_a_master_without_tls_is_said(gateway, det):
    result = det("-m", gateway.url.replace("http:", "https:"), "e", "list")
    assert "does not use TLS: its address begins with http://" in result.err
    assert result.status == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "Forbidden(no)"),
        (401, "Unauthenticated: no; log in with 'det user login"),
        (404, "no"),
        (400, "no"),
    ],
)
def test_refusals_are_status_1_with_the_masters_words(master, det, status, words):
    master.answer("POST", f"{EXPERIMENTS}/1/kill", Status(status, {"error": {"error": "no"}}))
    result = det("e", "kill", "1")
    assert result.status == 1
    assert result.err.startswith(f"Failed to kill an experiment: {words}")


def test_tracebacks_on_request(master, det, monkeypatch):
    monkeypatch.setenv("DET_DEBUG", "true")
    master.answer("POST", f"{EXPERIMENTS}/1/kill", Status(400, "no"))
    assert "Traceback" in det("e", "kill", "1").err


def test_unexpected_errors_print_a_traceback(det, monkeypatch):
    def broken(session, args):
        raise ZeroDivisionError("nobody thought of this")

    verb = version.VERB._replace(run=broken)
    monkeypatch.setattr(cli, "ROOT", cli.ROOT._replace(children=(verb,)))
    result = det("version")
    assert result.status == 1
    assert "Traceback" in result.err
    assert "nobody thought of this" in result.err


def test_a_damaged_token_store_is_one_failure_then_works(master, det, client_home):
    client_home.mkdir()
    (client_home / "auth.json").write_text("{")
    master.answer("GET", EXPERIMENTS, EMPTY)
    result = det("e", "list")
    assert result.status == 1
    assert "Attempted to read a corrupted token cache" in result.err
    assert det("e", "list").status == 0


def test_a_reader_that_has_enough_is_no_error(master, start_det):
    rows = [{"id": n, "username": "u", "name": "n" * 80, "state": "STATE_ACTIVE"} for n in range(2000)]
    master.answer("GET", EXPERIMENTS, {"experiments": rows, "pagination": {"total": len(rows)}})
    process = start_det("e", "list", "--csv")
    assert process.stdout.readline() == "ID,Owner,Name,Parent ID,State,Progress,Started,Ended,Resource Pool\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(30) == 0


_LOADED = """
import sys
from determined.cli.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
heavy = "requests urllib3 rich yaml pathspec nats minio obstore torch numpy boto3 google azure".split()
print("loaded:", [name for name in heavy if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("words", [[], ["--help"], ["e", "help"], ["e", "create", "-h"], ["-v"]])
def test_help_loads_nothing_heavy(words):
    command = [sys.executable, "-c", _LOADED, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "loaded: []\n"
    assert done.stdout


def test_a_user_without_a_home_is_told_what_to_set(det, master, monkeypatch):
    lose_account(monkeypatch)
    monkeypatch.delenv("DET_DEBUG_CONFIG_PATH", raising=False)
    status, _, error = det("e", "list")
    assert status == 1
    assert error.startswith("Failed to list experiments: user ")
    assert error.endswith("has no home directory on this host: set HOME\n")


@pytest.mark.parametrize(
    ("redirection", "status", "complaint"),
    [
        (">&-", 0, ""),
        (">/dev/full", 1, "the output cannot be written: No space left on device\n"),
        (">&- 2>&-", 0, ""),
    ],
)
def test_output_that_nobody_can_read_needs_no_traceback(redirection, status, complaint):
    command = f"'{sys.executable}' -m determined.cli --help {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (status, complaint)


def test_an_error_without_stderr_does_not_go_to_stdout():
    command = f"'{sys.executable}' -m determined.cli no-such-noun 2>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_program_may_take_the_command_as_in_025(capsys):
    from determined.cli.__main__ import main  # Runs nothing by itself.

    assert capsys.readouterr().out == ""
    main(["--version"])
    assert __version__ in capsys.readouterr().out


def without_help(noun, path):
    """The arguments of all verbs of a noun that say nothing of what they are."""
    for child in noun.children:
        name = f"{path} {child.names.split()[0]}"
        if isinstance(child, grammar.Noun):
            yield from without_help(child, name)
            continue
        for item in child.args:
            for argument in item.args if isinstance(item, grammar.OneOf) else (item,):
                if not argument.options.get("help"):
                    yield f"{name} {argument.names[-1]}"


def test_each_argument_of_each_command_is_explained():
    assert list(without_help(cli.ROOT, "det")) == []


@pytest.mark.parametrize("path", list(instead.WORDS))
def test_each_word_that_people_try_leads_to_a_command_that_exists(path):
    rows = instead.WORDS[path]
    words = [word for row in rows for word in row.split()]
    assert len(words) == len(set(words))
    noun = grammar.find(cli.ROOT, ["help", *path.split()[1:]]).node
    assert not [word for word in words if any(word in child.names.split() for child in noun.children)]
    for text in rows.values():
        commands = re.findall(r"det ((?:[a-z][a-z-]* ?)+)", text)
        assert commands, text
        for command in commands:
            assert isinstance(grammar.find(cli.ROOT, command.split()).node, grammar.Verb), command
