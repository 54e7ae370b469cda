"""OpenTelemetry traces, from a user's request to the first line that a script writes.

Tracing is off and costs nothing unless the standard OTEL_* variables name an exporter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.kit.settings import BadSettings

if TYPE_CHECKING:
    from services.kit.spans import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def configure(program: str, environment: Mapping[str, str]) -> Tracer | None:
    """Return the tracer that the OTEL_* variables ask for, or None. Raises `BadSettings`."""
    named = environment.get("OTEL_TRACES_EXPORTER", "")
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or named == "none"
    if disabled or not (named or any(environment.get(name) for name in ENDPOINTS)):
        return None
    if named not in ("", "otlp"):
        raise BadSettings(f"OTEL_TRACES_EXPORTER='{named}': there is 'otlp', over HTTP, and 'none'")
    try:
        from services.kit.spans import Tracer
    except ImportError as error:
        message = f"OTEL_* variables name an exporter, but {error.name} is not installed"
        raise BadSettings(f"{message}: pip install 'steadfast[traces]'") from error
    return Tracer(program)
