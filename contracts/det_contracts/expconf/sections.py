"""The smaller sections of a configuration: mounts, profiling, optimizations, batch systems, log policies."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from det_contracts.expconf.containers import Field, ListOf, Record, low_first, rule, unless_taken
from det_contracts.expconf.scalars import Choice, Flag, Text, Whole

BAD_PRECISION = "mixed_precision should be a string starting with an uppercase letter 'O'"


def _begins_before_end(profiling: dict[str, Any]) -> bool:
    end = profiling.get("end_after_batch")
    return end is None or (profiling.get("begin_on_batch") or 0) <= end


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


BIND_MOUNTS = ListOf(
    Record(
        {
            "host_path": Field(Text(posixpath.isabs, "host_path must be an absolute path"), needed="now"),
            "container_path": Field(
                Text(lambda path: path != ".", 'container_path must not be "."'), needed="now"
            ),
            "read_only": Field(Flag(), False),
            "propagation": Field(Text(), "rprivate"),
        }
    ),
    unless_taken("container_path"),
)

PROFILING = Record(
    {
        "enabled": Field(Flag(), False),
        "begin_on_batch": Field(Whole(0), 0),
        "end_after_batch": Field(Whole(0)),
        "sync_timings": Field(Flag(), True),
    },
    (
        rule(
            "begin_on_batch end_after_batch",
            "begin_on_batch must be less than end_after_batch",
            _begins_before_end,
        ),
    ),
)

OPTIMIZATIONS = Record(
    {
        "aggregation_frequency": Field(Whole(1), 1),
        "average_aggregated_gradients": Field(Flag(), True),
        "average_training_metrics": Field(Flag(), True),
        "gradient_compression": Field(Flag(), False),
        "grad_updates_size_file": Field(Text()),
        "mixed_precision": Field(Choice(("O0", "O1", "O2", "O3"), BAD_PRECISION), "O0"),
        "tensor_fusion_threshold": Field(Whole(0), 64),
        "tensor_fusion_cycle_time": Field(Whole(0), 5),
        "auto_tune_tensor_fusion": Field(Flag(), False),
    }
)

ARGUMENTS = Field(ListOf(Text(), low_first), [])
SLOTS_PER_NODE = Field(Whole(1))
SLURM = Record({"slots_per_node": SLOTS_PER_NODE, "gpu_type": Field(Text()), "sbatch_args": ARGUMENTS})
PBS = Record({"slots_per_node": SLOTS_PER_NODE, "pbsbatch_args": ARGUMENTS})

SECURITY = Record({"kerberos": Field(Record({"config_file": Field(Text(), needed="now")}))})

LOG_ACTION = Record({"type": Field(Choice(("cancel_retries", "exclude_node")), needed="now")})
LOG_POLICIES = ListOf(
    Record(
        {
            "pattern": Field(Text(_compiles, "must be a valid regular expression"), needed="now"),
            "action": Field(LOG_ACTION, needed="now"),
        }
    )
)
