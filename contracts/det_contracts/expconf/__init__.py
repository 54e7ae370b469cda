"""The experiment configuration: read, checked, merged and completed, as plain data in and out.

Callers parse YAML themselves and bring the clock's and the generator's results along.
"""

from det_contracts.expconf.complete import complete, merge, sanity_check
from det_contracts.expconf.entrypoint import BadEntrypoint, entrypoint_command
from det_contracts.expconf.faults import ConfigErrors
from det_contracts.expconf.hyperparameters import flat, has_count, is_group, leaves
from det_contracts.expconf.length import Length, Unit
from det_contracts.expconf.live import LIVE_FIELDS, revise
from det_contracts.expconf.masking import MASK, is_masked, is_secret_name, masked, secrets_of, with_secrets
from det_contracts.expconf.names import random_name
from det_contracts.expconf.outline import Known, outline
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
    "complete",
    "entrypoint_command",
    "environment_variables",
    "flat",
    "has_count",
    "is_group",
    "is_masked",
    "is_secret_name",
    "leaves",
    "masked",
    "merge",
    "outline",
    "random_name",
    "resources",
    "retention",
    "revise",
    "sanity_check",
    "secrets_of",
    "with_secrets",
]
