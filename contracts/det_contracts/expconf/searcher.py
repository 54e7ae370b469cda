"""Which search method runs, and with what (experiment configuration spec, section 2.3)."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf.containers import Field, ListOf, Record, Union, rule
from det_contracts.expconf.length import SEARCH_LENGTH, SEARCH_LENGTH_WITH_UNIT, UNITS
from det_contracts.expconf.scalars import Choice, Flag, Real, Text, Whole

UNKNOWN = (
    'is not an object where object["name"] is one of '
    "'single', 'random', 'grid', 'custom', or 'adaptive_asha'"
)
REMOVED = ("adaptive", "adaptive_simple", "sync_halving")

MAX_LENGTH = Field(SEARCH_LENGTH, needed="finally")
MAX_TRIALS = Field(Whole(1), needed="finally")
CONCURRENT = Field(Whole(0), 16)
DIVISOR = Field(Real(above=1), 4)
STOP_ONCE = Field(Flag(), False)

SHARED = {
    "metric": Field(Text(), needed="finally"),
    "smaller_is_better": Field(Flag(), True),
    "source_trial_id": Field(Whole()),
    "source_checkpoint_uuid": Field(Text()),
}

METHODS = {
    "single": Record({"max_length": MAX_LENGTH}),
    "random": Record(
        {"max_length": MAX_LENGTH, "max_trials": MAX_TRIALS, "max_concurrent_trials": CONCURRENT}
    ),
    "grid": Record({"max_length": MAX_LENGTH, "max_concurrent_trials": CONCURRENT}),
    "async_halving": Record(
        {
            "num_rungs": Field(Whole(1), needed="finally"),
            "max_length": Field(SEARCH_LENGTH_WITH_UNIT, needed="finally"),
            "max_trials": MAX_TRIALS,
            "divisor": DIVISOR,
            "max_concurrent_trials": CONCURRENT,
            "stop_once": STOP_ONCE,
        }
    ),
    "adaptive_asha": Record(
        {
            "max_length": MAX_LENGTH,
            "max_trials": MAX_TRIALS,
            "mode": Field(Choice(("aggressive", "standard", "conservative")), "standard"),
            "divisor": DIVISOR,
            "max_rungs": Field(Whole(1), 5),
            "max_concurrent_trials": CONCURRENT,
            "bracket_rungs": Field(ListOf(Whole(1)), []),
            "stop_once": STOP_ONCE,
        }
    ),
    "custom": Record({"unit": Field(Choice(UNITS))}, open=True),
}


def _removed(name: str) -> Record:
    message = f"the '{name}' searcher has been removed and is not valid for new experiments"
    return Record({}, (rule("", message, lambda _: False, final=True),), open=True)


SEARCHER = Union("name", SHARED, METHODS | {name: _removed(name) for name in REMOVED}, UNKNOWN)


def is_grid(config: dict[str, Any]) -> bool:
    """Whether a configuration asks for a grid."""
    searcher = config.get("searcher")
    return isinstance(searcher, dict) and searcher.get("name") == "grid"
