"""A start is like the last one, except for what an option says."""

import sys
from dataclasses import replace

import pytest

from services.local import __main__ as local
from services.local import control
from services.local.__main__ import _parser
from services.local.home import RUN_AS, SHARDS, Home, Plan
from services.local.preconditions import CannotStart
from services.local.start_options import STORE, compared, plan_of

LAST = Plan(
    name="test",
    port=8181,
    host="192.0.2.1",
    agents=2,
    slots=4,
    gpu=False,
    storage="/checkpoints",
    settings={SHARDS: "2", "STEADFAST_X": "1"},
    pools=["a", "b"],
    pools_file="/pools.yaml",
    tls=True,
)


@pytest.fixture
def home(tmp_path):
    return Home("test", tmp_path)


def started_with(home, *words):
    return plan_of(_parser().parse_args(["up", "--name", "test", *words]), home)


def test_the_first_start_has_the_usual_options(home):
    plan = started_with(home)
    assert plan == Plan(name="test", port=8080, host="127.0.0.1", agents=1, slots=1, gpu=True, tls=False)


def test_a_start_without_options_is_like_the_last_one(home):
    """A cluster that came back at another port, or unencrypted, surprised everyone who used it."""
    home.write_plan(replace(LAST, python="/an/environment/of/before", ends_with=17))
    # Trials have the packages of the environment from which it is started, and nothing else ends it.
    assert started_with(home) == replace(LAST, python=sys.executable, ends_with=0)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (["--port", "9"], {"port": 9}),
        (["--host", "127.0.0.1"], {"host": "127.0.0.1"}),
        (["--no-tls"], {"tls": False}),
        (["--agents", "1"], {"agents": 1}),
        (["--slots", "3"], {"slots": 3, "gpu": False}),
        (["--no-gpu"], {"slots": 1, "gpu": False}),
        (["--gpu"], {"slots": 1, "gpu": True}),
        (["--pool", "c"], {"pools": ["c"]}),
        (["--pools", "/other.yaml"], {"pools_file": "/other.yaml"}),
        (["--storage", "/elsewhere"], {"storage": "/elsewhere"}),
        (["--metrics", "1"], {"settings": {SHARDS: "1", "STEADFAST_X": "1"}}),
        (["--set", "STEADFAST_X=2"], {"settings": {SHARDS: "2", "STEADFAST_X": "2"}}),
    ],
)
def test_an_option_changes_what_it_names(home, words, changes):
    home.write_plan(LAST)
    assert started_with(home, *words) == replace(LAST, **changes)


def test_a_masters_file_replaces_the_settings_and_pools_of_the_one_before(home, tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        "port: 8282\ncluster_name: one\ncheckpoint_storage: {type: s3, bucket: b}\n"
        "resource_pools: [{pool_name: a}]\n"
    )
    second.write_text("cluster_name: two\n")
    home.write_plan(LAST)
    plan = started_with(home, "--master-config", str(first))
    assert (plan.port, plan.settings["STEADFAST_CLUSTER_NAME"], plan.settings[SHARDS]) == (8282, "one", "2")
    assert (plan.pools_file, bool(plan.pools_content)) == ("", True)
    home.write_plan(plan)
    # The directory was named last: it counts, as if both had been named at once it could not.
    assert STORE not in started_with(home, "--storage", "/elsewhere").settings
    plan = started_with(home, "--master-config", str(second))
    assert plan.settings == {SHARDS: "2", "STEADFAST_CLUSTER_NAME": "two"}
    assert plan.pools_content == {}


def test_a_start_says_in_one_line_what_it_keeps_and_changes(home):
    secret = replace(LAST, settings={"STEADFAST_KEY": "secret"})
    line = compared(secret, replace(secret, port=9, tls=False))
    assert "--slots 4" in line
    assert "(STEADFAST_KEY)" in line
    assert "secret" not in line
    assert line.endswith("; changed: port: 8181 -> 9, tls: True -> False")
    assert "--master-port" not in line
    assert "\n" not in line
    usual = Plan(name="test")
    assert compared(usual, usual) == ""
    assert compared(usual, replace(usual, port=9)) == "changed: port: 8080 -> 9"
    assert compared(replace(usual, port=9), replace(usual, port=9)) == "as at its last start: --master-port 9"


def test_the_line_is_printed_before_a_cluster_starts_and_not_for_one_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STEADFAST_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["services.local", "up", "--name", "test"])
    monkeypatch.setenv(RUN_AS, "nobody")
    monkeypatch.setattr(local, "up", lambda plan, home, **options: plan.address)
    Home("test").write_plan(replace(LAST, python=sys.executable))
    assert local.main() == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("cluster 'test' starts as at its last start: --master-port 8181 ")
    assert second.startswith("cluster 'test' is up: https://192.0.2.1:8181")
    monkeypatch.setattr("services.local.start_options.is_running", lambda home: True)
    assert local.main() == 0
    assert "last start" not in capsys.readouterr().out


def test_options_with_which_a_cluster_did_not_start_are_not_kept(home, monkeypatch):
    """A wrong option would otherwise be repeated by each start that does not name it."""

    def refuse(*arguments):
        raise CannotStart("a program refuses its settings")

    class Ended:
        pid, returncode, poll = 2**22 + 1, 1, None

    monkeypatch.setattr(control, "wait_until_up", refuse)
    monkeypatch.setattr(control, "check_port", lambda plan: None)
    for plan, next_start in [(replace(LAST, port=1), replace(LAST, port=1)), (LAST, replace(LAST, port=1))]:
        with pytest.raises(CannotStart, match="refuses"):
            control.up(plan, home, password="x", start=lambda *words, **options: Ended())
        # That of a first start is: there is no other, and `logs` and `status` need one.
        assert home.plan() == next_start
