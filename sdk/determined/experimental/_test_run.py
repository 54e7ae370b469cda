"""Runs one batch of a trial class locally, for `test_one_batch` and `--local --test-mode`.

Client spec, section 4.3.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from det_contracts import expconf
from det_contracts.expconf.hyperparameters import is_group
from determined._legacy import EnvContext

_STAND_INS: dict[str, Any] = {
    "entrypoint": "local:Trial",
    "searcher": {"name": "single", "metric": "validation_loss", "max_length": {"batches": 1}},
}
"""Fields that a configuration requires on a cluster and that have no effect locally."""
_STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/"}}


def run(trial_class: type[Any], config: Mapping[str, Any]) -> None:
    """Train one batch, validate and save a checkpoint, then discard everything. Errors are passed on."""
    from determined.exec import harness

    entry = harness.entry_of(trial_class) if isinstance(trial_class, type) else None
    if entry is None:
        bases = ", ".join(f"{module}.{name}" for module, name, _ in harness.TRIALS)
        raise TypeError(f"{trial_class!r} is not a subclass of any of {bases}")
    completed = whole(config)
    # A different sample each time, so that repeated tests try more of the space.
    hparams = drawn(completed.get("hyperparameters") or {}, random.Random())
    with _nothing_kept():
        entry.try_locally(trial_class, hparams, completed)


def whole(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with defaults. Raises ValueError listing all invalid fields."""
    seed = random.randrange(2**31)
    try:
        return expconf.complete({**_STAND_INS, **config}, defaults=[_STORAGE], seed=seed, name="local")
    except expconf.ConfigErrors as error:
        raise ValueError(str(error)) from error


def drawn(space: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Sample one value of each hyperparameter."""
    return {name: _drawn_value(value, rng) for name, value in space.items()}


def _drawn_value(value: Any, rng: random.Random) -> Any:
    if is_group(value):
        return drawn(value, rng)
    if not isinstance(value, dict):
        return value
    low, high = value.get("minval", 0), value.get("maxval", 0)
    kinds: dict[str, Callable[[], Any]] = {
        "const": lambda: value["val"],
        "categorical": lambda: rng.choice(value["vals"]),
        "int": lambda: rng.randint(low, high),
        "double": lambda: rng.uniform(low, high),
        "log": lambda: value["base"] ** rng.uniform(low, high),
    }
    return kinds[value["type"]]()


@contextlib.contextmanager
def _nothing_kept() -> Iterator[None]:
    """Store the test's checkpoint in a temporary directory."""
    # The directory of user data, where checkpoints off cluster go; a test run shall leave none there.
    before = os.environ.get("XDG_DATA_HOME")
    with tempfile.TemporaryDirectory(prefix="test-one-batch-") as scratch:
        os.environ["XDG_DATA_HOME"] = scratch
        try:
            yield
        finally:
            if before is None:
                del os.environ["XDG_DATA_HOME"]
            else:
                os.environ["XDG_DATA_HOME"] = before


def environment(config: Mapping[str, Any]) -> EnvContext:
    """Return the environment a trial with this complete configuration would get, with off-cluster values."""
    seed = int(config["reproducibility"]["experiment_seed"])
    return EnvContext(
        master_url="",
        master_cert_file=None,
        master_cert_name=None,
        experiment_config=dict(config),
        hparams=drawn(config.get("hyperparameters") or {}, random.Random(seed)),
        latest_checkpoint=None,
        steps_completed=0,
        use_gpu=False,
        container_gpus=[],
        slot_ids=[],
        debug=False,
        det_trial_id="1",
        det_experiment_id="1",
        det_agent_id="",
        det_cluster_id="",
        trial_seed=seed,
        trial_run_id=1,
        allocation_id="",
        managed_training=False,
        test_mode=False,
        on_cluster=False,
    )
