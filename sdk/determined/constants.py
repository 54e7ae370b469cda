"""Defaults of 0.25 that scripts read by this module's name."""

import os

from determined.core._distributed import PORT_1, PORT_2

MAX_SLOTS_PER_AGENT = 16
DEFAULT_SCHEDULING_UNIT = 100
DEFAULT_SEARCHER_CFG = {"name": "single", "max_length": {"batches": 100}}
DEFAULT_RESOURCES_CFG = {"slots_per_trial": 1, "native_parallel": False}
DEFAULT_OPTIMIZATIONS = {
    "aggregation_frequency": 1,
    "average_aggregated_gradients": True,
    "average_training_metrics": True,
    "gradient_compression": False,
    "mixed_precision": "O0",
}
DEFAULT_EXP_CFG = {
    "searcher": DEFAULT_SEARCHER_CFG,
    "scheduling_unit": DEFAULT_SCHEDULING_UNIT,
    "resources": DEFAULT_RESOURCES_CFG,
    "optimizations": DEFAULT_OPTIMIZATIONS,
}
INTER_TRAIN_PROCESS_COMM_PORT_1 = PORT_1
INTER_TRAIN_PROCESS_COMM_PORT_2 = PORT_2
DTRAIN_SSH_PORT = int(os.environ.get("DTRAIN_SSH_PORT") or 12350)
HOROVOD_GLOO_RENDEZVOUS_PORT = int(os.environ.get("HOROVOD_GLOO_RENDEZVOUS_PORT") or 12355)
