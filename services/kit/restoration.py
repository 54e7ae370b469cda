"""What a service needs to fill an empty database from elsewhere than the log."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.database import Database
from services.kit.log import Log
from services.kit.self_watch import SelfWatch
from services.kit.settings import ServiceSettings


@dataclass(frozen=True)
class Restoration:
    """The parts of a service that is about to read the log."""

    owner: str
    settings: ServiceSettings
    database: Database
    journal: Log
    watch: SelfWatch
