"""What becomes of reports when a script ends."""

import math
import os

EXIT_PATIENCE = "STEADFAST_EXIT_PATIENCE_S"
EXIT_PATIENCE_S = 300.0
"""Long, for nobody else could be given the slots while the cluster is away."""


def exit_patience() -> float:
    """How long a script that ends without `close` waits while nothing can be stored.

    Seconds, from the environment; ValueError for what is none.
    """
    text = os.environ.get(EXIT_PATIENCE) or str(EXIT_PATIENCE_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(f"{EXIT_PATIENCE} must be a number of seconds, 0 or more, not {text!r}")
    return seconds


def lost(what: str, why: str) -> str:
    """The last words about what was not stored, and how to keep that from happening again."""
    return (
        f"lost, because the script ended before the cluster had stored it: {what}; {why}. Leave the core "
        "context with `with` or close(), which wait for as long as the cluster is away. A script that ends "
        f"without that waits {exit_patience():g} seconds; {EXIT_PATIENCE} changes how many."
    )
