"""To the gateway, about what a trial uses."""

from __future__ import annotations

import msgspec

from det_contracts.events.gateway import SourceKind
from det_contracts.ownership import command


@command("gateway")
class ReportTrialSource(msgspec.Struct, frozen=True, kw_only=True, tag="report_trial_source"):
    """To the gateway's own log: a trial judges a checkpoint or trains it further. Idempotent."""

    trial_id: int
    uuid: str
    """The checkpoint."""
    kind: SourceKind
    model_id: int | None = None
    version: int | None = None
    """The number of the model's version, if the checkpoint was used as one."""
    user: str
