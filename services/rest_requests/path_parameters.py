"""Parameters in paths that have a form of their own, as the OpenAPI document shows it.

What does not have it is refused by the route itself, with words of its own.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import WithJsonSchema

from services.catalogue.why_subjects import KINDS

AllocationId = Annotated[str, WithJsonSchema({"type": "string", "pattern": r"^[^/]+\.[^/]+$"})]
"""A run: `<task id>.<number>`."""
QuotaHolder = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": "^(user|group|workspace)-(0|[1-9][0-9]{0,17})$"})
]
"""Whom a quota limits, such as `user-3`."""
SubjectKind = Annotated[str, WithJsonSchema({"type": "string", "enum": list(KINDS)})]
"""The kind of thing whose history is explained."""
