"""Tests a trial class without a cluster (client spec, section 2)."""

from __future__ import annotations

from typing import Any


def test_one_batch(trial_class: type[Any], config: dict[str, Any] | None = None) -> None:  # noqa: PT028 - no test
    """Train one batch, validate and store a checkpoint without a cluster. Prints a message on success.

    Args:
        trial_class: A `PyTorchTrial` or another class that can be named as an entrypoint.
        config: An experiment configuration. One value is sampled of each hyperparameter that is not constant.
            Without a configuration, the class gets no hyperparameters.

    Raises:
        ValueError: If the configuration is invalid. The message lists all errors. Exceptions that the class
            raises are passed on.

    Example:
        ```python
        from determined.experimental import test_one_batch

        test_one_batch(MyTrial, {"hyperparameters": {"global_batch_size": 32}})
        ```
    """
    from determined.experimental import _test_run

    _test_run.run(trial_class, config or {})
    print("The test experiment passed.")


test_one_batch.__test__ = False  # type: ignore[attr-defined]  # otherwise pytest collects the imported name
