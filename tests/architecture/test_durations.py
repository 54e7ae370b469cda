"""A tier that has grown is noticed by what grew, whatever the speed of the machine."""

import json
from types import SimpleNamespace

import pytest

from tests.fixtures import durations
from tests.fixtures.durations import growth, processor_times, stolen

RECORDED = {f"tests/test_{n}.py": 10.0 for n in range(10)}
LIVE = {"tests/live/test_quick.py": 1.0, "tests/live/test_slow.py": 2.0}


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


def test_a_disturbed_run_of_tests_is_distinguished():
    assert stolen([100, 0, 50, 800, 5, 0, 1, 4, 0, 0], [150, 0, 60, 830, 5, 0, 1, 14, 0, 0]) == 0.1
    assert stolen((), ()) == 0.0
    assert 0 <= stolen(processor_times(), processor_times()) <= 1


def test_those_that_share_clusters_run_first_and_then_the_slowest(monkeypatch):
    folder = durations.RECORD.parent
    names = ("kit/test_new.py", "kit/test_slow.py", "live/test_quick.py", "live/test_slow.py")
    monkeypatch.setattr(durations, "_read", lambda: {"test": {"tests/kit/test_slow.py": 9.0} | LIVE})
    items = [SimpleNamespace(path=folder / name) for name in names for _ in range(2)]
    durations.pytest_collection_modifyitems(items)
    order = [item.path.relative_to(folder).as_posix() for item in items[::2]]
    assert order == ["live/test_slow.py", "live/test_quick.py", "kit/test_slow.py", "kit/test_new.py"]


CASE = '<testcase classname="tests.kit.test_a" name="test_it[{}]" time="{}">{}</testcase>'


@pytest.fixture
def report(tmp_path, monkeypatch):
    """Writes a JUnit file of the tier `test` with these cases; another tier is recorded already."""
    monkeypatch.setattr(durations, "RECORD", tmp_path / "tests" / "durations.json")
    durations.RECORD.parent.mkdir()
    durations.RECORD.write_text('{"fast": {"tests/kit/test_a.py": 1.0}}')

    def write(*cases):
        path = tmp_path / "test.xml"
        path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        return path

    return write


def test_times_are_recorded_from_the_report_of_a_run(report):
    durations.record(report(CASE.format(1, 0.25, ""), CASE.format(2, 0.5, "<skipped/>")))
    recorded = json.loads(durations.RECORD.read_text())
    assert recorded == {"fast": {"tests/kit/test_a.py": 1.0}, "test": {"tests/kit/test_a.py": 0.75}}


@pytest.mark.parametrize("trouble", ["failure", "error"])
def test_a_run_with_failures_is_not_recorded(report, trouble):
    with pytest.raises(ValueError, match=r"tests\.kit\.test_a\.test_it\[1\] failed"):
        durations.record(report(CASE.format(1, 0.25, f"<{trouble}/>")))


def test_nor_is_a_part_of_a_tier(report):
    durations.RECORD.write_text(json.dumps({"test": {f"tests/kit/test_{n}.py": 1.0 for n in "abcd"}}))
    with pytest.raises(ValueError, match="is of a part of the tier 'test'"):
        durations.record(report(CASE.format(1, 0.25, "")))
