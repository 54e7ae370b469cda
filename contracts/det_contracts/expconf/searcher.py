"""Search methods and their settings (experiment configuration spec, section 2.3).

`tpe` and `pbt` are additions (docs/search-methods.md).
"""

from __future__ import annotations

from typing import Any

from det_contracts.expconf.composites import Field, ListOf, Record, Rule, Union, rule
from det_contracts.expconf.length import SEARCH_LENGTH, SEARCH_LENGTH_WITH_UNIT, UNITS, Length
from det_contracts.expconf.scalars import Boolean, Choice, Integer, Number, Text

REMOVED = ("adaptive", "adaptive_simple", "sync_halving")

MAX_LENGTH = Field(SEARCH_LENGTH, needed="finally")
MAX_TRIALS = Field(Integer(1), needed="finally")
CONCURRENT = Field(Integer(0), 16)
DIVISOR = Field(Number(above=1), 4)
STOP_ONCE = Field(Boolean(), False)

SHARED = {
    "metric": Field(Text(), needed="finally"),
    "smaller_is_better": Field(Boolean(), True),
    "source_trial_id": Field(Integer()),
    "source_checkpoint_uuid": Field(Text()),
}

IDLE_ROUNDS = "must be at least num_rounds, or rounds would train nothing"


def _at_most(key: str, most: float) -> Rule:
    return rule(key, f"must be at most {most:g}", lambda record: (record.get(key) or 0) <= most, at=f".{key}")


def _rounds_train(searcher: dict[str, Any]) -> bool:
    length, rounds = searcher.get("max_length"), searcher.get("num_rounds")
    if length is None or rounds is None:
        return True
    return Length.of(length).count >= int(rounds)


RUNGS = Record({"max_rungs": Field(Integer(1), 5), "divisor": DIVISOR, "stop_once": STOP_ONCE})
REPLACE = Record({"truncate_fraction": Field(Number(low=0), 0.2)}, (_at_most("truncate_fraction", 0.5),))
EXPLORE = Record(
    {
        "resample_probability": Field(Number(low=0), 0.2),
        "perturb_factor": Field(Number(low=0), 0.2),
    },
    (_at_most("resample_probability", 1), _at_most("perturb_factor", 1)),
)

METHODS = {
    "single": Record({"max_length": MAX_LENGTH}),
    "random": Record(
        {"max_length": MAX_LENGTH, "max_trials": MAX_TRIALS, "max_concurrent_trials": CONCURRENT}
    ),
    "grid": Record({"max_length": MAX_LENGTH, "max_concurrent_trials": CONCURRENT}),
    "async_halving": Record(
        {
            "num_rungs": Field(Integer(1), needed="finally"),
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
            "max_rungs": Field(Integer(1), 5),
            "max_concurrent_trials": CONCURRENT,
            "bracket_rungs": Field(ListOf(Integer(1)), []),
            "stop_once": STOP_ONCE,
        }
    ),
    "tpe": Record(
        {
            "max_length": MAX_LENGTH,
            "max_trials": MAX_TRIALS,
            "max_concurrent_trials": CONCURRENT,
            "num_startup_trials": Field(Integer(1), 10),
            "rungs": Field(RUNGS),
        }
    ),
    "pbt": Record(
        {
            "max_length": MAX_LENGTH,
            "population_size": Field(Integer(1, 1000), needed="finally"),
            "num_rounds": Field(Integer(1), needed="finally"),
            "replace_function": Field(REPLACE, {}),
            "explore_function": Field(EXPLORE, {}),
        },
        (rule("max_length num_rounds", IDLE_ROUNDS, _rounds_train, at=".max_length"),),
    ),
    "custom": Record({"unit": Field(Choice(UNITS))}, open=True),
}
"""By name. The searcher has a file for each (`services/searcher/methods/`)."""
MEANINGS = {
    "metric": "The validation metric used to compare trials.",
    "smaller_is_better": "Whether smaller values of the metric are better.",
    "source_trial_id": "Every trial starts from the latest checkpoint of this trial, at step 0.",
    "source_checkpoint_uuid": "Every trial starts from this checkpoint, at step 0.",
    "max_length": (
        "The maximum training length of a trial: `batches`, `records` or `epochs`, or a bare number that "
        "only your script interprets. Trial classes need a unit."
    ),
    "max_trials": "The total number of trials that the search creates.",
    "max_concurrent_trials": (
        "How many trials may train at the same time. 0 means as many as the slots allow."
    ),
    "num_rungs": "The number of rungs: lengths at which trials are compared and the worse ones stop.",
    "max_rungs": "The maximum number of rungs in any bracket.",
    "divisor": (
        "One in this many trials continues from each rung, and each rung is this many times as long as "
        "the previous one."
    ),
    "mode": (
        "Which brackets run in parallel: `aggressive` only the strictest, `standard` the stricter half, "
        "`conservative` all, including one that stops no trial."
    ),
    "bracket_rungs": (
        "The number of rungs of each bracket, instead of those chosen by `mode` and `max_rungs`."
    ),
    "stop_once": (
        "`false`: a trial that is not among the best of its rung waits and may continue later. `true`: it"
        " is stopped permanently."
    ),
    "unit": "The unit of lengths in your own search method. See *custom search*.",
    "num_startup_trials": "How many trials are sampled at random before the model of good values is used.",
    "rungs": (
        "Stops bad trials early at rungs, like `adaptive_asha`. Without it every trial trains to the end."
    ),
    "rungs.max_rungs": "The maximum number of rungs.",
    "rungs.divisor": "One in this many trials continues from each rung.",
    "rungs.stop_once": "As for `adaptive_asha`.",
    "population_size": "The number of trials in each round.",
    "num_rounds": (
        "The number of rounds that `max_length` is divided into. Bad trials are replaced between rounds."
    ),
    "replace_function": "Which trials are replaced after a round.",
    "replace_function.truncate_fraction": (
        "The fraction of the population, the worst, that is replaced by copies of the best."
    ),
    "explore_function": "How the copies' hyperparameters are changed.",
    "explore_function.resample_probability": "The probability that a value is resampled at random.",
    "explore_function.perturb_factor": "Other values are multiplied by one plus or one minus this factor.",
}
"""What each field means, for people who write configurations: included in the reference documentation."""


_NAMES = [f"'{name}'" for name in METHODS]
UNKNOWN = f'is not an object where object["name"] is one of {", ".join(_NAMES[:-1])}, or {_NAMES[-1]}'


def _removed(name: str) -> Record:
    message = (
        f"the '{name}' searcher has been removed and is not valid for new experiments; "
        "use 'adaptive_asha', or 'async_halving' to set num_rungs yourself"
    )
    return Record({}, (rule("", message, lambda _: False, final=True),), open=True)


SEARCHER = Union("name", SHARED, METHODS | {name: _removed(name) for name in REMOVED}, UNKNOWN)


def is_grid(config: dict[str, Any]) -> bool:
    """Whether a configuration requests a grid search."""
    searcher = config.get("searcher")
    return isinstance(searcher, dict) and searcher.get("name") == "grid"
