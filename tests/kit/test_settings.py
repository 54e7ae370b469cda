"""Settings from the environment."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from services.kit.settings import BadSettings, ServiceSettings, load


@dataclass(frozen=True)
class Mine(ServiceSettings):
    must: str = ""
    count: int = 1
    share: float | None = None
    on: bool = False
    place: Path | None = None


@dataclass(frozen=True)
class Needed:
    this: str
    that: int


def test_values_take_the_types_of_their_fields():
    environment = {
        "STEADFAST_COUNT": "7",
        "STEADFAST_SHARE": "0.5",
        "STEADFAST_ON": "yes",
        "STEADFAST_PLACE": "/x",
    }
    settings = load(Mine, environment)
    assert (settings.count, settings.share, settings.on, settings.place) == (7, 0.5, True, Path("/x"))
    assert settings.nats_url == "nats://127.0.0.1:4222"


def test_an_empty_variable_counts_as_absent():
    assert load(Mine, {"STEADFAST_COUNT": ""}).count == 1


def test_all_problems_are_reported_at_once():
    with pytest.raises(BadSettings) as raised:
        load(Mine, {"STEADFAST_COUNT": "many", "STEADFAST_ON": "perhaps", "STEADFAST_HEALTH_PORT": "x"})
    for variable in ("STEADFAST_COUNT='many'", "STEADFAST_ON='perhaps'", "STEADFAST_HEALTH_PORT='x'"):
        assert variable in str(raised.value)
    assert "STEADFAST_COUNT='many': expected a whole number" in str(raised.value)
    with pytest.raises(BadSettings) as raised:
        load(Needed, {})
    assert "STEADFAST_THIS is not set" in str(raised.value)
    assert "STEADFAST_THAT is not set" in str(raised.value)


def test_a_number_that_is_none_is_named_in_plain_words():
    with pytest.raises(BadSettings, match="STEADFAST_SHARE='half': expected a number"):
        load(Mine, {"STEADFAST_SHARE": "half"})
