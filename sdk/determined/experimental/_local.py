"""Tries a trial class without a cluster (client spec, section 2)."""

from __future__ import annotations

from typing import Any


def test_one_batch(trial_class: type[Any], config: dict[str, Any] | None = None) -> None:  # noqa: PT028 - no test
    """Train one batch, validate and store a checkpoint, without a cluster, and print that it worked.

    Args:
        trial_class: A `PyTorchTrial` or another class that may be named as an entrypoint.
        config: An experiment configuration; of each hyperparameter that is not constant one value is drawn.
            Without it the class gets no hyperparameters.

    Raises:
        ValueError: The configuration is wrong; all its faults are named. Whatever the class raises is raised,
            too.
    """
    from determined.experimental import _test_run

    _test_run.run(trial_class, config or {})
    print("The test experiment passed.")


test_one_batch.__test__ = False  # type: ignore[attr-defined]  # pytest takes the imported name for a test
