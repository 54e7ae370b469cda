"""What happens to unsent reports when a script exits."""

import math
import os

EXIT_PATIENCE = "STEADFAST_EXIT_PATIENCE_S"
EXIT_PATIENCE_S = 300.0
"""Long, because while the cluster is unreachable nobody else could be given the slots anyway."""


def exit_patience() -> float:
    """Return how long a script that exits without `close` waits while nothing can be stored.

    In seconds, from the environment. Raises ValueError for an invalid value.
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
    """Format the final message about what was not stored, and how to avoid that in future."""
    return (
        f"lost, because the script ended before the cluster had stored it: {what}; {why}. Leave the core "
        "context with `with` or close(), which wait for as long as the cluster is away. A script that ends "
        f"without that waits {exit_patience():g} seconds; {EXIT_PATIENCE} changes how many."
    )
