"""The base of all request bodies.

Field names are camelCase or snake_case, and unknown fields are ignored (REST spec, section 1).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer that fits into 64 bits, which is what the databases can store."""
T = TypeVar("T")
BoundedList = Annotated[list[T], Field(max_length=1000)]
"""A list of what one request may assign or remove. It is bounded: each item costs its owner work."""


def in_utc(at: datetime) -> datetime:
    """Return a time with a time zone: UTC if it has none, as in queries, wherever the gateway runs."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)


Instant = Annotated[datetime, AfterValidator(in_utc)]
"""A point in time, always with a time zone."""


class Body(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        if info.mode != "json":
            # In JSON mode the parser has already checked all strings.
            _reject_surrogates(data)
        # Clients of 0.25 send null for fields that they leave alone.
        return {name: value for name, value in data.items() if value is not None}


def _reject_surrogates(data: Any) -> None:
    """Raise `ValueError` for lone surrogates: JSON can express them, but they cannot be stored or sent."""
    try:
        msgspec.json.encode(data)
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ValueError(f"it contains the lone surrogate {half!a}, which is half a character") from None
    except (OverflowError, ValueError, RecursionError):
        # Other problems are left to the validators of the fields concerned.
        return
