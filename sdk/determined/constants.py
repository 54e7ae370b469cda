"""Constants of Determined 0.25 that scripts read from this module."""

import os
from collections.abc import Callable
from typing import Any

from determined.core._distributed import port_1, port_2

MAX_SLOTS_PER_AGENT = 16
DEFAULT_SCHEDULING_UNIT = 100
DEFAULT_SEARCHER_CFG: dict[str, Any] = {"name": "single", "max_length": {"batches": 100}}
DEFAULT_RESOURCES_CFG: dict[str, Any] = {"slots_per_trial": 1, "native_parallel": False}
DEFAULT_OPTIMIZATIONS: dict[str, Any] = {
    "aggregation_frequency": 1,
    "average_aggregated_gradients": True,
    "average_training_metrics": True,
    "gradient_compression": False,
    "mixed_precision": "O0",
}
DEFAULT_EXP_CFG: dict[str, Any] = {
    "searcher": DEFAULT_SEARCHER_CFG,
    "scheduling_unit": DEFAULT_SCHEDULING_UNIT,
    "resources": DEFAULT_RESOURCES_CFG,
    "optimizations": DEFAULT_OPTIMIZATIONS,
}
_PORTS: dict[str, Callable[[], int]] = {
    "INTER_TRAIN_PROCESS_COMM_PORT_1": port_1,
    "INTER_TRAIN_PROCESS_COMM_PORT_2": port_2,
    "DTRAIN_SSH_PORT": lambda: int(os.environ.get("DTRAIN_SSH_PORT") or 12350),
    "HOROVOD_GLOO_RENDEZVOUS_PORT": lambda: int(os.environ.get("HOROVOD_GLOO_RENDEZVOUS_PORT") or 12355),
}


def __getattr__(name: str) -> int:
    """Return a port of this run. Read on access, because a module may be loaded before the run is known."""
    if name in _PORTS:
        return _PORTS[name]()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
