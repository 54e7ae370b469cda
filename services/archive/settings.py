"""What the archive needs to know beside the common settings."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.settings import BadSettings, ServiceSettings

LEAST_EVENTS = 100
"""Of a segment: each is told by an event itself."""


@dataclass(frozen=True)
class Settings(ServiceSettings):
    """Read from the environment."""

    archive_segment_events: int = 100_000
    """Events that make a segment; fewer where they are large."""
    archive_keep_days: float = 30.0
    """Younger events stay in the broker, too."""
    archive_keep_events: int = 100_000
    """So many of the newest events stay there in any case: readers that are behind need no archive."""
    archive_look_s: float = 60.0
    """How often it looks whether there is something to do."""


def check(settings: Settings) -> None:
    """Raise `BadSettings` for what makes no sense."""
    problems = []
    if not settings.archive:
        problems.append("STEADFAST_ARCHIVE is not set: it names the directory or bucket of the archive")
    if settings.archive_segment_events < LEAST_EVENTS:
        count = settings.archive_segment_events
        problems.append(f"STEADFAST_ARCHIVE_SEGMENT_EVENTS={count}: at least {LEAST_EVENTS}")
    if settings.archive_keep_days < 0 or settings.archive_keep_events < 0:
        problems.append("STEADFAST_ARCHIVE_KEEP_DAYS and STEADFAST_ARCHIVE_KEEP_EVENTS are not negative")
    if settings.archive_look_s <= 0:
        problems.append(f"STEADFAST_ARCHIVE_LOOK_S={settings.archive_look_s}: more than 0")
    if problems:
        raise BadSettings("\n".join(problems))
