"""Small sets of step numbers."""

from hypothesis import given
from hypothesis import strategies as st

from services.metrics.domain.steps import MAX_STRETCHES, Stretch, add, contains


def filled(numbers):
    steps = ()
    for number in numbers:
        steps = add(steps, number)
    return steps


@given(st.lists(st.integers(0, 300), unique=True, max_size=150))
def test_it_holds_what_was_added_and_nothing_else(numbers):
    steps = filled(numbers)
    assert [n for n in range(-5, 320) if contains(steps, n)] == sorted(numbers)


def test_even_strides_are_one_stretch():
    assert filled(range(100, 100_000, 100)) == (Stretch(100, 100, 999),)
    assert filled(range(50, -1, -5)) == (Stretch(50, -5, 11),)


def test_a_step_back_after_a_restart_opens_a_second_stretch():
    assert filled([*range(0, 50, 10), *range(5, 55, 10)]) == (Stretch(0, 10, 5), Stretch(5, 10, 5))


def test_irregular_steps_are_bounded_and_drop_the_oldest():
    numbers = [n * n for n in range(4 * MAX_STRETCHES)]
    steps = filled(numbers)
    assert len(steps) <= MAX_STRETCHES
    assert contains(steps, numbers[-1])
    assert not contains(steps, numbers[10])
