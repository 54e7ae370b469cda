"""The smaller sections of a configuration: mounts, profiling, optimizations, batch systems, log policies."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from det_contracts.expconf.composites import Field, ListOf, Record, append_missing_by, low_first, rule
from det_contracts.expconf.scalars import Boolean, Choice, Integer, Text

BAD_PRECISION = "mixed_precision should be a string starting with an uppercase letter 'O'"


def _begins_before_end(profiling: dict[str, Any]) -> bool:
    end = profiling.get("end_after_batch")
    return end is None or (profiling.get("begin_on_batch") or 0) <= end


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        # A number of repetitions, or groups within groups, beyond what Python takes.
        return False
    return True


BIND_MOUNTS = ListOf(
    Record(
        {
            "host_path": Field(Text(posixpath.isabs, "host_path must be an absolute path"), needed="now"),
            "container_path": Field(
                Text(lambda path: path != ".", 'container_path must not be "."'), needed="now"
            ),
            "read_only": Field(Boolean(), False),
            "propagation": Field(Text(), "rprivate"),
        }
    ),
    append_missing_by("container_path"),
)

PROFILING = Record(
    {
        "enabled": Field(Boolean(), False),
        "begin_on_batch": Field(Integer(0), 0),
        "end_after_batch": Field(Integer(0)),
        "sync_timings": Field(Boolean(), True),
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
        "aggregation_frequency": Field(Integer(1), 1),
        "average_aggregated_gradients": Field(Boolean(), True),
        "average_training_metrics": Field(Boolean(), True),
        "gradient_compression": Field(Boolean(), False),
        "grad_updates_size_file": Field(Text()),
        "mixed_precision": Field(Choice(("O0", "O1", "O2", "O3"), BAD_PRECISION), "O0"),
        "tensor_fusion_threshold": Field(Integer(0), 64),
        "tensor_fusion_cycle_time": Field(Integer(0), 5),
        "auto_tune_tensor_fusion": Field(Boolean(), False),
    }
)

ARGUMENTS = Field(ListOf(Text(), low_first), [])
SLOTS_PER_NODE = Field(Integer(1))
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
