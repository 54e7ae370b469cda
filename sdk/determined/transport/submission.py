"""Submits an experiment (REST spec, section 3.1)."""

from __future__ import annotations

import uuid
from typing import Any

from determined.transport.rest import Progress, Session

WARNINGS = {
    "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED": (
        "Warning: this asks for more slots than the cluster has at present; it waits for more."
    ),
}


def submit(session: Session, body: dict[str, Any], on_sent: Progress | None = None) -> dict[str, Any]:
    """Create an experiment, only once even if a proxy repeats the request. Returns the master's response."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    answer: dict[str, Any] = session.post("/api/v1/experiments", body, headers=headers, on_sent=on_sent)
    return answer


def warnings_of(answer: dict[str, Any]) -> list[str]:
    """Return the master's warnings as text, in its own words if it sends any."""
    if answer.get("notices"):
        return [f"Warning: {notice}" for notice in answer["notices"]]
    return [WARNINGS.get(code, f"Warning: {code}") for code in answer.get("warnings") or []]
