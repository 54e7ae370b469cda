"""Where in a log errors and warnings are."""

from det_contracts.queries import LogFields
from services.metrics.logs.marks import PARTS
from tests.metrics.world import lines


def test_errors_and_warnings_are_counted_by_part_of_the_log(saved):
    ask = saved(
        lines(*(f"{n}" for n in range(999)), offset=0),
        lines("odd", level="WARNING", offset=1000),
        lines(*(f"{n}" for n in range(999)), offset=2000),
        lines("bad", level="ERROR", offset=4000),
    )
    middle, end = PARTS // 2 - 1, PARTS - 1
    assert ask(LogFields("1.a"))["marks"] == [[middle, 0, 1], [end, 1, 0]]
    assert ask(LogFields("9.z"))["marks"] == []


def test_a_log_of_many_chunks_is_marked_without_reading_them_all(saved):
    ask = saved()
    for n in range(300):
        text = [f"{n}.{line}" for line in range(200)]
        saved(
            lines(*text[1:], offset=2 * n),
            lines(text[0], level="ERROR" if n % 100 == 50 else None, offset=2 * n + 1),
        )
    marks = ask(LogFields("1.a"))["marks"]
    assert [errors for _, errors, _ in marks] == [1, 1, 1]
    for (part, _, _), place in zip(marks, (50, 150, 250), strict=True):
        assert abs(part - (place + 1) / 300 * PARTS) <= 1.5


def test_a_single_line_is_a_log_too(saved):
    assert saved(lines("bad", level="ERROR"))(LogFields("1.a"))["marks"] == [[0, 1, 0]]
