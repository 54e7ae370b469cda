"""Tries a trial class without a cluster (client spec, section 2)."""

from __future__ import annotations

from typing import Any


def test_one_batch(trial_class: type[Any], config: dict[str, Any] | None = None) -> None:  # noqa: PT028 - no test
    """Train one batch, validate, save a checkpoint, and say that it worked.

    `config` is an experiment configuration; of each hyperparameter that is no constant one value is drawn.
    Without one the class gets no hyperparameters.
    Raises whatever the class raises, and ValueError for a configuration that is wrong.
    """
    from determined.experimental import _tryout

    _tryout.run(trial_class, config or {})
    print("The test experiment passed.")


test_one_batch.__test__ = False  # type: ignore[attr-defined]  # pytest takes the imported name for a test
