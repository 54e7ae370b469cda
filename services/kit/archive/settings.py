"""The location of the archive, from a service's settings."""

from __future__ import annotations

from services.kit import blobs
from services.kit.archive.log import ArchivedLog
from services.kit.archive.segments import Segments
from services.kit.log import Log
from services.kit.settings import BadSettings, ServiceSettings


def segments_of(settings: ServiceSettings) -> Segments | None:
    """Return the archive, or None if there is none. Raises `BadSettings`."""
    if not settings.archive:
        return None
    try:
        store = blobs.connect(
            settings.archive,
            endpoint_url=settings.s3_endpoint_url,
            access_key=settings.s3_access_key,
            secret_key=settings.s3_secret_key,
        )
    except ValueError as error:
        raise BadSettings(f"STEADFAST_ARCHIVE: {error}") from error
    return Segments(store)


def log_with_archive(stream: Log, settings: ServiceSettings) -> Log:
    """Return the log including the archive, if there is one."""
    segments = segments_of(settings)
    return stream if segments is None else ArchivedLog(stream, segments)
