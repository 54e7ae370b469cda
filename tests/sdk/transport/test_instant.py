from __future__ import annotations

from datetime import UTC, datetime

import pytest

from determined.transport import instant


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [
        ("2023-08-01T12:00:00Z", 0),
        ("2023-08-01T12:00:00.5Z", 500_000),
        ("2023-08-01T12:00:00.123456789Z", 123_456),
        ("2023-08-01T14:00:00.000001+02:00", 1),
        ("2023-08-01T12:00:00", 0),
    ],
)
def test_instants_are_read_in_utc_to_the_microsecond(text, microsecond):
    expected = datetime(2023, 8, 1, 12, 0, 0, microsecond, tzinfo=UTC)
    assert instant.parse(text) == expected
    assert instant.parse(instant.write(expected)) == expected


def test_anything_else_is_refused():
    for text in ("", "yesterday"):
        with pytest.raises(ValueError):  # noqa: PT011
            instant.parse(text)
