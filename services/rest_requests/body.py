"""The base of all request bodies.

Field names are camelCase or snake_case, and unknown fields are ignored (REST spec, section 1).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema


def _reject_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("Input should be a valid integer")
    return value


NOT_A_FLAG = BeforeValidator(_reject_flag)
"""Annotate an integer that `true` is not. Bounds stand before it: behind it, they would not be checked."""
Long = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), NOT_A_FLAG]
"""An integer that fits into 64 bits, which is what the databases can store, or the same as a string."""
Flag = StrictBool
"""True or false, and not 0 or 1."""
T = TypeVar("T")
COMPONENTS = "#/components/schemas/"
"""Where the OpenAPI document has its schemas."""
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

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> Any:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        properties, required = schema.get("properties", {}), schema.get("required", ())
        for name, described in properties.items():
            if name not in required and {"type": "null"} not in described.get("anyOf", ()):
                default = {"default": described.pop("default")} if "default" in described else {}
                properties[name] = {"anyOf": [described, {"type": "null"}], **default}
        return reference


def documented(**keywords: Any) -> Any:
    """Annotate a field with keywords of JSON schema, for what the route or the owner of the fact checks.

    Example:
        ```python
        url: Annotated[str, documented(pattern="^https?://")]
        ```
    """
    return Field(json_schema_extra=keywords)


def requires(*names: str) -> ConfigDict:
    """Document fields as required in one use of a body: `model_config = requires("name")`."""

    def change(schema: dict[str, Any]) -> None:
        for name in names:
            described = schema["properties"][name]
            described.pop("default", None)
            described |= next((kind for kind in described.pop("anyOf", ()) if kind.get("type") != "null"), {})
        schema["required"] = [*schema.get("required", ()), *names]

    return ConfigDict(json_schema_extra=change)


def request_schema(shape: Any, *, required: bool = True) -> dict[str, Any]:
    """Declare a body that a route reads for itself: `@router.post(path, needs, **request_schema(New))`.

    `shape` is a body, or the JSON schema of one.
    """
    schema = shape
    if not isinstance(shape, dict):
        own = shape.model_json_schema(ref_template=COMPONENTS + "{model}")
        schema = {"$ref": COMPONENTS + own["title"], "$defs": {**own.pop("$defs", {}), own["title"]: own}}
    content = {"application/json": {"schema": schema}}
    return {"openapi_extra": {"requestBody": {"required": required, "content": content}}}


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
