"""Small functions that published example scripts import by this module's name."""

from typing import Any


def merge_dicts(base: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """Return `base` overlaid by `source`, key by key where both hold dicts; neither is changed."""
    merged = dict(base)
    for key, value in source.items():
        below = merged.get(key)
        both = isinstance(below, dict) and isinstance(value, dict)
        merged[key] = merge_dicts(below, value) if both else value  # type: ignore[arg-type]
    return merged


def make_metrics(num_inputs: int | None, batch_metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Put metrics of single batches beside their averages over the batches that have each name."""
    names = {name: None for metrics in batch_metrics for name in metrics}
    averages = {}
    for name in names:
        values = [metrics[name] for metrics in batch_metrics if metrics.get(name) is not None]
        averages[name] = sum(values) / len(values) if values else None
    made: dict[str, Any] = {"batch_metrics": batch_metrics, "avg_metrics": averages}
    return made if num_inputs is None else {**made, "num_inputs": num_inputs}
