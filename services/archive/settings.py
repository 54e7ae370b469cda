"""The archive's own settings, besides the common ones."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.settings import BadSettings, ServiceSettings

LEAST_EVENTS = 100
"""Minimum number of events per segment, because each segment is announced by an event itself."""


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """Settings read from the environment."""

    archive_segment_events: int = 100_000
    """Number of events per segment; fewer if they are large."""
    archive_keep_days: float = 30.0
    """Events younger than this stay in the broker, too."""
    archive_keep_events: int = 100_000
    """Number of newest events that always stay in the broker, so that lagging readers need no archive."""
    archive_look_s: float = 60.0
    """Interval in seconds between two looks for work."""


def check(settings: Settings) -> None:
    """Raise `BadSettings` for invalid values."""
    problems = []
    if not settings.archive:
        problems.append("STEADFAST_ARCHIVE is not set: it names the directory or bucket of the archive")
    if settings.archive_segment_events < LEAST_EVENTS:
        count = settings.archive_segment_events
        problems.append(f"STEADFAST_ARCHIVE_SEGMENT_EVENTS={count}: at least {LEAST_EVENTS}")
    if settings.archive_keep_days < 0 or settings.archive_keep_events < 0:
        problems.append("STEADFAST_ARCHIVE_KEEP_DAYS and STEADFAST_ARCHIVE_KEEP_EVENTS must not be negative")
    if settings.archive_look_s <= 0:
        problems.append(f"STEADFAST_ARCHIVE_LOOK_S={settings.archive_look_s}: must be more than 0")
    if problems:
        raise BadSettings("\n".join(problems))
