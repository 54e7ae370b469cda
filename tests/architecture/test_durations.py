"""A tier that has grown is noticed by what grew, whatever the speed and the load of the machine."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from tests.fixtures import durations
from tests.fixtures.durations import PROCESSOR, growth

RECORDED = {f"tests/test_{n}.py": 10.0 for n in range(10)}
LIVE = {"tests/live/test_quick.py": 1.0, "tests/live/test_slow.py": 2.0}


def times(clock_s, processor_s=None):
    return {"clock_s": clock_s, "processor_s": processor_s or {}}


def spent(slowness, **more):
    return {name: before * slowness for name, before in RECORDED.items()} | more


def test_a_slow_machine_is_no_growth():
    assert growth(RECORDED, spent(1.0)) == ""
    assert growth(RECORDED, spent(7.0)) == ""
    assert growth(RECORDED, spent(0.3)) == ""


def test_a_tier_may_grow_by_less_than_a_fifth():
    assert growth(RECORDED, spent(2.0) | {"tests/test_3.py": 55.0}) == ""


def test_what_grew_is_named_first():
    warning = growth(RECORDED, spent(2.0) | {"tests/test_3.py": 80.0})
    assert warning.splitlines()[0].startswith("260 s where 200 s were expected")
    assert warning.splitlines()[1].split() == ["+60.0", "s", "tests/test_3.py"]


def test_a_new_file_counts_in_full():
    warning = growth(RECORDED, spent(2.0) | {"tests/test_new.py": 41.0})
    assert "tests/test_new.py" in warning.splitlines()[1]


def test_a_selection_and_a_tier_without_a_record_are_not_judged():
    assert growth(RECORDED, {"tests/test_1.py": 99.0}) == ""
    assert growth({}, {"tests/test_1.py": 99.0}) == ""


def test_files_that_are_over_at_once_say_nothing_of_the_machine():
    short = {f"tests/short_{n}.py": 0.01 for n in range(50)}
    assert growth(RECORDED | short, spent(1.0) | dict.fromkeys(short, 0.05)) == ""


def test_short_files_that_compute_say_little_of_long_ones_that_wait():
    short = {f"tests/short_{n}.py": 1.0 for n in range(50)}
    assert growth(RECORDED | short, spent(3.0) | dict.fromkeys(short, 2.0)) == ""


MODULE = """
import subprocess, sys, time
import pytest

CODE = "import time\\nwhile time.process_time() < 0.2: pass"

@pytest.fixture
def ended():
    yield
    subprocess.run([sys.executable, "-S", "-c", CODE], check=True)

def test_that_waits_for_a_process(ended):
    pass

def test_that_computes():
    began = time.process_time()
    while time.process_time() - began < 0.2:
        pass

def test_that_does_neither():
    pass
"""


def test_processor_time_of_a_test_includes_processes_that_it_waited_for(tmp_path):
    (tmp_path / "test_it.py").write_text(MODULE)
    words = ["-q", "--basetemp=inner", "--rootdir=.", "-p", "tests.fixtures.durations", "--junitxml=tier.xml"]
    environment = os.environ | {"PYTHONPATH": str(durations.RECORD.parents[1])}
    command = [sys.executable, "-m", "pytest", *words, "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    spent = {}
    for case in ET.parse(tmp_path / "tier.xml").getroot().iter("testcase"):
        (only,) = case.iter("property")
        assert only.get("name") == PROCESSOR
        spent[case.get("name")] = float(only.get("value"))
    assert spent["test_that_waits_for_a_process"] >= 0.15
    assert spent["test_that_computes"] >= 0.15
    assert spent["test_that_does_neither"] < 0.15


def test_those_that_share_clusters_run_first_and_then_the_slowest(monkeypatch):
    folder = durations.RECORD.parents[1]
    names = [
        f"tests/{name}.py" for name in ("kit/test_new", "kit/test_slow", "live/test_quick", "live/test_slow")
    ]
    monkeypatch.setattr(durations, "_read", lambda: {"test": times({"tests/kit/test_slow.py": 9.0} | LIVE)})
    items = [
        SimpleNamespace(path=folder / name, nodeid=f"{name}::test_{n}") for name in names for n in range(2)
    ]
    durations.pytest_collection_modifyitems(items)
    assert [item.path.stem for item in items[::2]] == ["test_slow", "test_quick", "test_slow", "test_new"]
    assert [item.path.parent.name for item in items] == ["live"] * 4 + ["kit"] * 4


CASE = """
<testcase classname="tests.kit.test_a" name="test_it[{}]" time="{}">{}
<properties><property name="processor_s" value="0.125"/></properties></testcase>
"""


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Writes a JUnit file of the tier `test` with these cases; another tier is recorded already."""
    monkeypatch.setattr(durations, "RECORD", tmp_path / "tests" / "durations.json")
    durations.RECORD.parent.mkdir()
    durations.RECORD.write_text(json.dumps({"fast": times({"tests/kit/test_a.py": 1.0})}))

    def write(*cases):
        path = tmp_path / "test.xml"
        path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        return path

    return write


def test_times_are_recorded_from_the_report_of_a_run(report):
    durations.record(report(CASE.format(1, 0.25, ""), CASE.format(2, 0.5, "<skipped/>")))
    recorded = json.loads(durations.RECORD.read_text())
    assert recorded == {
        "fast": times({"tests/kit/test_a.py": 1.0}),
        "test": times({"tests/kit/test_a.py": 0.75}, {"tests/kit/test_a.py": 0.25}),
    }


@pytest.mark.parametrize("trouble", ["failure", "error"])
def test_a_run_with_failures_is_not_recorded(report, trouble):
    with pytest.raises(ValueError, match=r"tests\.kit\.test_a\.test_it\[1\] failed"):
        durations.record(report(CASE.format(1, 0.25, f"<{trouble}/>")))


def test_nor_is_a_part_of_a_tier(report):
    durations.RECORD.write_text(json.dumps({"test": times({f"tests/kit/test_{n}.py": 1.0 for n in "abcd"})}))
    with pytest.raises(ValueError, match="is of a part of the tier 'test'"):
        durations.record(report(CASE.format(1, 0.25, "")))
