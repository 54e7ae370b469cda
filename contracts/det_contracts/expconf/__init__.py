"""The experiment configuration: parsing, validation, merging and completion of plain data.

Callers parse YAML themselves, and pass in values from the clock and the random generator.
"""

from det_contracts.expconf.complete import complete, merge, sanity_check
from det_contracts.expconf.entrypoint import BadEntrypoint, entrypoint_command
from det_contracts.expconf.faults import ConfigErrors
from det_contracts.expconf.hyperparameters import flatten, has_count, is_group, leaves
from det_contracts.expconf.length import Length, Unit
from det_contracts.expconf.live import LIVE_FIELDS, revise
from det_contracts.expconf.masking import (
    MASK,
    is_masked,
    is_secret_name,
    mask_secrets,
    replace_secrets,
    secrets_of,
)
from det_contracts.expconf.outline import Known, outline
from det_contracts.expconf.random_names import random_name
from det_contracts.expconf.task import check_task
from det_contracts.expconf.views import (
    Device,
    Resources,
    Retention,
    environment_variables,
    resources,
    retention,
)

__all__ = [
    "LIVE_FIELDS",
    "MASK",
    "BadEntrypoint",
    "ConfigErrors",
    "Device",
    "Known",
    "Length",
    "Resources",
    "Retention",
    "Unit",
    "check_task",
    "complete",
    "entrypoint_command",
    "environment_variables",
    "flatten",
    "has_count",
    "is_group",
    "is_masked",
    "is_secret_name",
    "leaves",
    "mask_secrets",
    "merge",
    "outline",
    "random_name",
    "replace_secrets",
    "resources",
    "retention",
    "revise",
    "sanity_check",
    "secrets_of",
]
