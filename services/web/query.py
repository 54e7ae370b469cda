"""Query parameters: models that the framework reads, checks and documents.

A route takes one: `async def users(call: Authenticated, query: FromQuery[Paged])`. As with bodies, names
may be lowerCamelCase or snake_case, unknown parameters are ignored, an empty value counts as absent, and the
last one wins if a single value is repeated (REST spec, section 1).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn, TypeVar
from urllib.parse import quote, unquote_plus

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, PydanticUseDefault
from starlette.types import ASGIApp, Receive, Scope, Send

from det_contracts.problems import invalid
from services.kit.paging import Window

MAX_INT64 = 2**63 - 2
"""The largest number that is taken: its neighbour, which a bound may become, also fits into 64 bits."""
FAULT = "query"
"""Error type of faults raised here. Their message follows the parameter's name."""
_BOOLEANS = {"true": True, "1": True, "": True, "false": False, "0": False}
_UNSPECIFIED = ("", "UNSPECIFIED", "0")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FRACTION = re.compile(r"\.(\d+)")
_ORDERS = {"": False, "UNSPECIFIED": False, "ASC": False, "DESC": True, "0": False, "1": False, "2": True}
NORMALIZED_PATHS = ("/api/v1/", "/experiments/", "/resources/")
"""Paths whose queries are normalised here; others are passed on unchanged."""

T = TypeVar("T")
FromQuery = Annotated[T, Query()]
"""`FromQuery[Model]`: a route's query parameters."""


NOTHING: Any = Field(default_factory=list)
"""Default of a list that is not given."""


class QueryModel(BaseModel):
    """Base class of all queries."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


def snake_case(name: str) -> str:
    """Return a parameter's Python name, from either spelling."""
    return _INNER_CAPITAL.sub("_", name).lower()


def normalize_names(query: bytes) -> bytes:
    """Convert all names of a query to lowerCamelCase; values are unchanged."""
    return b"&".join(_normalize_name(*part.partition(b"=")) for part in query.split(b"&"))


def _normalize_name(name: bytes, equals: bytes, value: bytes) -> bytes:
    parts = unquote_plus(name.decode("latin-1")).split(".")
    return quote(".".join(to_camel(snake_case(part)) for part in parts)).encode() + equals + value


class QueryNamesMiddleware:
    """Normalises the spelling of query names before they are read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["query_string"] and scope["path"].startswith(NORMALIZED_PATHS):
            scope = {**scope, "query_string": normalize_names(scope["query_string"])}
        await self._app(scope, receive, send)


def _fault(message: str) -> NoReturn:
    raise PydanticCustomError(FAULT, "{message}", {"message": message})


def _single_value(read: Callable[[str], Any], schema: dict[str, Any]) -> Any:
    """Return validator and schema of a single value. An empty value counts as absent."""

    def check(value: Any) -> Any:
        if value == "":
            raise PydanticUseDefault
        return read(value) if isinstance(value, str) else value

    return PlainValidator(check), WithJsonSchema(schema)


def _integer(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        _fault(f"must be a whole number, not '{text[:40]}'")
    # Larger numbers would fail in the database, as an error of the gateway.
    if not -MAX_INT64 <= number <= MAX_INT64:
        _fault(f"must be a number of 64 bits, not {text[:40]}")
    return number


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        _fault(f"must be a number, not '{text[:40]}'")
    return number


def _instant(text: str) -> float:
    # Python parses microseconds only; the API has nanoseconds.
    trimmed = _FRACTION.sub(lambda m: "." + m[1][:6], text)
    try:
        at = datetime.fromisoformat(trimmed)
    except ValueError:
        _fault(f"must be a time like 2023-08-01T12:00:00Z, not '{text}'")
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value.lower() not in _BOOLEANS:
        _fault(f"must be true or false, not '{value}'")
    return _BOOLEANS[value.lower()]


def _order(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    order = value.removeprefix("ORDER_BY_")
    if order not in _ORDERS:
        _fault(f"must be ORDER_BY_ASC or ORDER_BY_DESC, not '{order}'")
    return _ORDERS[order]


def enum_names(name: str, values: Iterable[str], prefix: str, allowed: Iterable[str]) -> list[str]:
    """Strip the prefix from enum values. "Unspecified" counts as absent.

    Raises `Refused` for unknown values.
    """
    try:
        return _strip_prefixes(values, prefix, tuple(allowed))
    except PydanticCustomError as error:
        raise invalid(f"{name} {error.message()}") from None


def _strip_prefixes(texts: Iterable[str], prefix: str, allowed: tuple[str, ...]) -> list[str]:
    values = [text.removeprefix(prefix) for text in texts]
    values = [value for value in values if value not in _UNSPECIFIED]
    for value in values:
        if value not in allowed:
            _fault(f"must be {prefix} and one of {', '.join(allowed)}, not '{value[:40]}'")
    return values


def _some_integers(values: list[str]) -> list[int]:
    return [_integer(value) if isinstance(value, str) else value for value in values]


_INTEGER = {"type": "integer", "minimum": -MAX_INT64, "maximum": MAX_INT64}
Integer = Annotated[int, *_single_value(_integer, _INTEGER)]
MaybeInteger = Annotated[int | None, *_single_value(_integer, _INTEGER)]
Number = Annotated[float | None, *_single_value(_number, {"type": "number"})]
"""A finite number."""
Instant = Annotated[
    float | None,
    *_single_value(_instant, {"anyOf": [{"type": "string", "format": "date-time"}, {"const": ""}]}),
]
"""An RFC 3339 time, converted to seconds since the epoch."""
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""A flag without a value is true."""
MaybeFlag = Annotated[bool | None, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
Integers = Annotated[
    list[int],
    PlainValidator(_some_integers),
    WithJsonSchema({"type": "array", "items": _INTEGER}),
]
Order = Annotated[
    bool,
    PlainValidator(_order),
    WithJsonSchema(
        {
            "type": "string",
            "enum": ["ORDER_BY_UNSPECIFIED", "ORDER_BY_ASC", "ORDER_BY_DESC", *filter(str.isdigit, _ORDERS)],
        }
    ),
]
"""Whether the order is descending."""


def integer_with_bounds(**bounds: int) -> Any:
    """Annotate an `int` as a number whose documented bounds the route checks, with words of its own."""
    return _ValidatorWithSchema(*_single_value(_integer, {**_INTEGER, **bounds}))


def integer_between(lowest: int, highest: int) -> Any:
    """Annotate an `int` as a number within these bounds."""

    def read(text: str) -> int:
        number = _integer(text)
        if not lowest <= number <= highest:
            _fault(f"must be from {lowest} to {highest}, not {number}")
        return number

    return _ValidatorWithSchema(
        *_single_value(read, {"type": "integer", "minimum": lowest, "maximum": highest})
    )


def enum_values(prefix: str, allowed: Iterable[str]) -> Any:
    """Annotate a `list[str]` as enum values that are written with a prefix and read without it."""
    all = tuple(allowed)
    items = {"type": "string", "enum": _documented_values(prefix, all)}
    schema = WithJsonSchema({"type": "array", "items": items})
    return _ValidatorWithSchema(
        PlainValidator(functools.partial(_strip_prefixes, prefix=prefix, allowed=all)), schema
    )


def enum_value(prefix: str, allowed: Iterable[str]) -> Any:
    """Annotate a `str` as an enum value that is written with a prefix and read without it."""
    all = tuple(allowed)

    def check(value: str) -> str:
        values = _strip_prefixes([value], prefix, all)
        if not values:
            raise PydanticUseDefault
        return values[0]

    schema = WithJsonSchema({"type": "string", "enum": _documented_values(prefix, all)})
    return _ValidatorWithSchema(PlainValidator(check), schema)


def _documented_values(prefix: str, allowed: tuple[str, ...]) -> list[str]:
    """What clients may write: the names, and 0, which generated clients send for "unspecified"."""
    return [*(prefix + value for value in ("UNSPECIFIED", *allowed)), "0"]


class _ValidatorWithSchema:
    """A validator and a schema as one annotation."""

    def __init__(self, check: PlainValidator, schema: WithJsonSchema) -> None:
        self._check, self._schema = check, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return self._check.__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return self._schema.__get_pydantic_json_schema__(schema, handler)


class Limited(QueryModel):
    """How many items are requested."""

    limit: Annotated[int, integer_with_bounds(minimum=-2)] = 0


class Ordered(QueryModel):
    """The order of the items."""

    order_by: Order = False


class Paged(Limited, Ordered):
    """A page of a list."""

    offset: Integer = 0

    @property
    def window(self) -> Window:
        """Offset, limit and direction."""
        return Window(self.offset, self.limit, self.order_by)


class Grouped(QueryModel):
    """One metric group, or all."""

    group: str = ""
    metric_type: Annotated[str, enum_value("METRIC_TYPE_", ("TRAINING", "VALIDATION"))] = ""
    """The older spelling of the groups `training` and `validation`; `group` wins."""

    @property
    def metric_group(self) -> str:
        """The requested group; empty for all."""
        return self.group or self.metric_type.lower()


class Periodic(QueryModel):
    """How often a stream may report changes."""

    period_seconds: Annotated[int, integer_with_bounds(minimum=0)] = 0


class Followed(Periodic):
    """Whether to continue until the requested thing has ended."""

    follow: Flag = False


class Users(QueryModel):
    """Restricts a list to certain users, by name or id."""

    users: list[str] = NOTHING
    user_ids: Integers = NOTHING
