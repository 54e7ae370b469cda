"""What is wrong, since when, and what passes while nobody could look."""

from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from services.kit import conditions as names
from services.kit.awake_clock import AwakeClock
from services.kit.conditions import KINDS, Conditions, DurationFilter, StallTimer

ROOT = Path(__file__).parents[2]


def test_a_condition_has_the_time_of_its_beginning_and_the_words_of_now():
    clock = [10.0]
    conditions = Conditions("metrics", lambda: clock[0])
    with capture_logs() as logged:
        conditions.set_condition(names.LOG_LAGS, {"LOGS": "at 5"})
        clock[0] = 13.0
        conditions.set_condition(names.LOG_LAGS, {"LOGS": "at 6", "REPORTS": "at 1"})
        assert [(it.about, it.message, it.since) for it in conditions.current()] == [
            ("LOGS", "at 6", 10.0),
            ("REPORTS", "at 1", 13.0),
        ]
        clock[0] = 20.0
        conditions.set_condition(names.LOG_LAGS, {"REPORTS": "at 1"})
        conditions.set_condition(names.LOG_LAGS, {})
    assert conditions.current() == []
    assert [(line["event"], line["about"], line.get("seconds")) for line in logged] == [
        ("condition.began", "LOGS", None),
        ("condition.began", "REPORTS", None),
        ("condition.ended", "LOGS", 10.0),
        ("condition.ended", "REPORTS", 7.0),
    ]


def test_what_comes_back_is_new():
    clock = [10.0]
    conditions = Conditions("metrics", lambda: clock[0])
    conditions.set_condition(names.BROKER_AWAY, {"": "away"})
    conditions.set_condition(names.BROKER_AWAY, {})
    clock[0] = 12.0
    conditions.set_condition(names.BROKER_AWAY, {"": "away"})
    assert [it.since for it in conditions.current()] == [12.0]


@pytest.mark.parametrize("condition", KINDS)
def test_operators_are_called_for_each_and_can_read_of_it(condition):
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
    expressions = [rule["expr"] for rule in rules]
    assert any(f'steadfast_condition{{condition="{condition}"}}' in expr for expr in expressions), condition
    page = (ROOT / "docs" / "guides" / "health.md").read_text()
    assert f"## `{condition}`" in page


def test_time_in_which_a_process_was_not_there_does_not_count():
    clock = [100.0]
    awake = AwakeClock(2.5, lambda: clock[0])
    for _ in range(3):
        clock[0] += 1.0
        awake()
    assert awake() == 3.0
    clock[0] += 3600.0
    assert awake() == 5.5


def test_only_lasting_conditions_are_reported_and_restart_when_they_return():
    lasting = DurationFilter(5.0)
    assert lasting.update(0.0, {"a": "x", "b": "y"}) == {}
    assert lasting.update(4.0, {"a": "x"}) == {}
    assert lasting.update(5.0, {"a": "z", "b": "y"}) == {"a": "z"}
    assert lasting.update(9.0, {"b": "y"}) == {}
    assert lasting.update(10.0, {"a": "x", "b": "y"}) == {"b": "y"}


def test_to_stand_still_is_to_have_something_to_do_and_not_to_do_it():
    still = StallTimer()
    assert still.update(0.0, has_work=True, progress=7) == 0.0
    assert still.update(60.0, has_work=True, progress=7) == 60.0
    # The smallest step is progress.
    assert still.update(61.0, has_work=True, progress=8) == 0.0
    assert still.update(70.0, has_work=False, progress=8) == 0.0
    assert still.update(75.0, has_work=True, progress=8) == 5.0
