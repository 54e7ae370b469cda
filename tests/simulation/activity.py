"""How much must have happened for a run without failures to mean anything."""

EACH = {
    "trials": 6,
    "completions": 5,
    "promotions": 0.5,
    "assignments": 8,
    "gangs": 0.1,
    "preemptions": 0.2,
    "preemptions for others": 0.02,
    "acknowledgements": 5,
    "kills": 0.2,
    "runs failed": 1,
    "runs worker_lost": 0.25,
    "workers lost": 0.3,
    "early exits": 0.1,
    "checkpoints": 2,
    "deletions": 0.4,
    "trials ERROR": 0.4,
    "trials CANCELED": 0.4,
    "own tasks": 0.4,
    "own tasks stopped": 0.02,
    "job changes": 0.2,
    "switches": 0.1,
    "faults": 8,
    "roots let go": 1,
    "roots brought": 1,
    "user actions": 4,
}
"""What to count, and how often each seed must do it on average at least."""


def too_little(counts, seeds):
    """A text on what happened too seldom; empty if nothing did."""
    lacking = [
        f"{what} {counts.get(what, 0)}" for what, least in EACH.items() if counts.get(what, 0) < least * seeds
    ]
    return f"too little happened in {seeds} seeds: {', '.join(lacking)}" if lacking else ""
