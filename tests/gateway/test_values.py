"""Single values of the API: any number that a script may have written into the log is shown."""

import pytest

from services.catalogue.api_values import format_time


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (0.0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000.25, "2023-11-14T22:13:20.250000Z"),
        (-1e300, "1970-01-01T00:00:00.000000Z"),
        (float("-inf"), "1970-01-01T00:00:00.000000Z"),
        (1e12, "9999-12-31T23:59:59.999999Z"),
        (1e300, "9999-12-31T23:59:59.999999Z"),
        (float("inf"), "9999-12-31T23:59:59.999999Z"),
        (float("nan"), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_every_number_is_shown_as_a_time(at, shown):
    assert format_time(at) == shown
