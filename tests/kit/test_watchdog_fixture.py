"""What fails a live test: records of a cluster that nobody expects, read once each."""

import json

import pytest

from tests.fixtures import watchdog
from tests.fixtures.watchdog import Expected, Watch


def line(event, level="info", **fields):
    return json.dumps({"event": event, "level": level, "service": "gateway"} | fields) + "\n"


@pytest.fixture
def write(tmp_path):
    def write(text, name="gateway"):
        with (tmp_path / f"{name}.log").open("a") as file:
            file.write(text)

    return write


@pytest.fixture
def watch(tmp_path):
    return Watch(tmp_path)


@pytest.mark.parametrize(
    "record",
    [
        line("loop.blocked", "warning", seconds=1.0, stack="at work"),
        line("log.lags", "warning", what="CONTROL"),
        line("request.failed", "error", exception="Traceback: ..."),
        line("service.failed", "critical"),
        line("anything", "warning", exception="Traceback: ..."),
    ],
)
def test_what_is_found(watch, write, record):
    write(line("service.ready") + record + line("service.leads"))
    (finding,) = watch.findings()
    assert finding.startswith("gateway: " + json.loads(record)["event"])
    for field in ("stack", "exception"):
        assert json.loads(record).get(field, "") in finding


def test_usual_records_are_not(watch, write):
    write(line("service.ready") + line("broker.error", "warning"))
    assert watch.findings() == []


def test_what_is_no_record_is_found_whole(watch, write):
    write(line("service.ready") + "Traceback (most recent call last):\n  File x\nValueError: y\n" + line("z"))
    (finding,) = watch.findings()
    assert "Traceback (most recent call last):\n  File x\nValueError: y" in finding


def test_of_a_broker_its_own_marks_are_looked_at(watch, write):
    write("[7] 2026/01/01 [INF] Server is ready\n[7] 2026/01/01 [ERR] disk is full\n", "broker")
    (finding,) = watch.findings()
    assert finding.startswith("broker: ")
    assert "disk is full" in finding


def test_each_record_is_read_once_and_a_partial_one_when_complete(watch, write):
    record = line("service.failed", "critical")
    write(record + record[:10])
    assert len(watch.findings()) == 1
    assert watch.findings() == []
    write(record[10:])
    assert len(watch.findings()) == 1


def test_what_is_expected_fails_nobody(monkeypatch, watch, write):
    monkeypatch.setattr(watchdog, "_WATCHED", [watch])
    write(line("service.failed", "critical", error="the log has lost its tail"))
    watchdog.check(Expected(r"service\.failed .*lost its tail", reason="tests"))
    write(line("service.failed", "critical", error="the log has a hole"))
    with pytest.raises(pytest.fail.Exception, match="the log has a hole"):
        watchdog.check(Expected(r"service\.failed .*lost its tail", reason="tests"))
    watchdog.check()
