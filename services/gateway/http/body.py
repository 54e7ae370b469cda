"""What all request bodies are: camelCase or snake_case, unknown fields ignored (REST spec, section 1)."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel

Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""What fits into 64 bits: no database takes more."""
T = TypeVar("T")
Some = Annotated[list[T], Field(max_length=1000)]
"""As many as one person gives or takes at a time: each costs a ruling."""


class Body(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: Any, known: ValidationInfo) -> Any:
        if not isinstance(data, dict):
            return data
        if known.mode != "json":
            # Else the reader has looked at all texts by itself.
            _check_texts(data)
        return {name: value for name, value in data.items() if value is not None}


def _check_texts(data: Any) -> None:
    """Raise ValueError for halves of characters: JSON may name them, and nothing can store or send them."""
    try:
        msgspec.json.encode(data)
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ValueError(f"it holds half a character, the lone surrogate {half!a}") from None
    except (OverflowError, ValueError, RecursionError):
        # Whoever wants to know what else is there looks at it.
        return
