"""How old the oldest thing is that is not done yet, and when that is told."""

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from services.kit.lag import RESOLUTION_S, SAVING, Lag, LagMonitor, WorstLag


class Clock:
    """Stands still unless it is told otherwise; so does the count of waits for a processor."""

    def __init__(self):
        self.now = 100.0
        self.waited = 7.0

    def lag(self):
        return Lag(lambda: self.now, lambda: self.waited)


def test_nothing_is_old_where_all_is_done():
    clock = Clock()
    lag = clock.lag()
    lag.set_total(5)
    lag.set_done(5)
    clock.now += 100
    assert (lag.age_s, lag.left) == (0.0, 0)


def test_the_oldest_of_what_is_left_counts():
    clock = Clock()
    lag = clock.lag()
    lag.set_total(5)
    clock.now += 3
    lag.set_total(8)
    lag.set_done(4)
    assert (lag.age_s, lag.left) == (3.0, 4)
    lag.set_done(5)
    assert (lag.age_s, lag.left) == (0.0, 3)
    clock.now += 2
    assert lag.age_s == 2.0


def test_a_stream_that_never_rests_and_is_followed_closely_is_not_old():
    clock = Clock()
    lag = clock.lag()
    for total in range(1, 1000):
        lag.set_total(total)
        lag.set_done(total - 1)
        clock.now += 0.1
        assert lag.age_s <= 0.1 + RESOLUTION_S
    assert lag.left == 1


def test_the_kernel_is_not_asked_for_each_message_that_comes_by_itself():
    now, readings = [100.0], []
    lag = Lag(lambda: now[0], lambda: readings.append(now[0]) or 7.0)
    for total in range(1, 101):
        lag.set_total(total)
        lag.set_done(total)
        now[0] += 0.01
    assert len(readings) <= 100 * 0.01 / RESOLUTION_S + 1


def test_the_time_that_this_process_waited_for_a_processor_is_no_age():
    clock = Clock()
    lag = clock.lag()
    lag.set_total(1)
    clock.now += 20
    clock.waited += 18
    assert lag.age_s == 2.0


def test_what_may_become_old_on_purpose_is_so_much_younger():
    clock = Clock()
    lag = clock.lag()
    lag.allowed_s = 5.0
    lag.set_total(1)
    clock.now += 4
    assert lag.age_s == 0.0
    clock.now += 4
    assert lag.age_s == 3.0


def test_what_is_removed_unread_is_not_waited_for():
    clock = Clock()
    lag = clock.lag()
    lag.set_total(5)
    clock.now += 1
    lag.set_total(10)
    lag.set_total(7)
    assert (lag.age_s, lag.left) == (1.0, 7)
    lag.set_done(5)
    assert (lag.age_s, lag.left) == (0.0, 2)
    lag.set_total(5)
    assert lag.left == 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.floats(0, 3))))
def test_what_is_left_is_what_was_said_last(steps):
    clock = Clock()
    lag = clock.lag()
    done = 0
    for total, progress, seconds in steps:
        lag.set_total(max(total, done))
        assert lag.left == max(total, done) - done
        done = min(done + progress, max(total, done))
        lag.set_done(done)
        assert lag.left == max(total, done) - done
        assert (lag.left == 0) == (lag._known_totals == type(lag._known_totals)())
        clock.now += seconds


def log_events(lags, clock, lag, seconds, enforced=True):
    clock.now += seconds
    with capture_logs() as logged:
        lags.check({"CONTROL": lag}, enforced=enforced)
    return [(line["event"], line["seconds"]) for line in logged]


def test_each_lag_is_logged_once_and_its_end_with_its_length():
    clock = Clock()
    lag, lags = clock.lag(), LagMonitor(5.0, {"CONTROL": 3}.__getitem__)
    lag.set_total(9)
    assert log_events(lags, clock, lag, 4) == []
    assert log_events(lags, clock, lag, 2) == [("log.lags", 6.0)]
    assert log_events(lags, clock, lag, 2) == []
    lag.set_done(9)
    assert log_events(lags, clock, lag, 1) == [("log.caught_up", 8.0)]
    lag.set_total(10)
    assert log_events(lags, clock, lag, 7) == [("log.lags", 7.0)]


def test_while_lags_are_not_judged_nothing_is_reported_and_no_time_counts():
    clock = Clock()
    lag, lags = clock.lag(), LagMonitor(5.0, {"CONTROL": 3}.__getitem__)
    lag.set_total(9)
    assert log_events(lags, clock, lag, 60, enforced=False) == []
    assert log_events(lags, clock, lag, 4) == []
    assert log_events(lags, clock, lag, 2) == [("log.lags", 6.0)]


def test_a_limit_of_0_is_none():
    clock = Clock()
    lag, lags = clock.lag(), LagMonitor(0.0, {"CONTROL": 3}.__getitem__)
    lag.set_total(9)
    assert log_events(lags, clock, lag, 60) == []


def test_a_lag_is_a_health_problem_as_long_as_it_lasts():
    clock, position = Clock(), {"LOGS": 3, SAVING: 2}
    logs_lag, saving_lag, lags = clock.lag(), clock.lag(), LagMonitor(5.0, position.__getitem__)
    logs_lag.set_total(9)
    saving_lag.set_total(4)
    assert lags.check({"LOGS": logs_lag, SAVING: saving_lag}, enforced=True) == {}
    clock.now += 6
    assert lags.check({"LOGS": logs_lag, SAVING: saving_lag}, enforced=True) == {
        "LOGS": "LOGS is not read, at position 3 with 9 more behind it",
        SAVING: "folded events are not saved, at position 2 with 4 more behind it",
    }
    saving_lag.set_done(4)
    position["LOGS"] = 4
    assert lags.check({"LOGS": logs_lag, SAVING: saving_lag}, enforced=True) == {
        "LOGS": "LOGS is not read, at position 4 with 9 more behind it"
    }


def test_of_two_who_know_the_one_who_says_the_worst_is_believed():
    clock = Clock()
    feed, end = clock.lag(), clock.lag()
    both = WorstLag(feed, end)
    end.set_total(7)
    clock.now += 3
    feed.set_total(1)
    assert (both.age_s, both.left, both.completed) == (3.0, 7, 0)
    end.set_done(7)
    assert (both.age_s, both.left, both.completed) == (0.0, 1, 7)
    clock.now += 1
    both.restart_age()
    assert both.age_s == 0.0
