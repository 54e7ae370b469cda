"""What may be asked for behind a question mark: models that the framework reads, checks and documents.

A route takes one: `async def users(visit: Asked, query: Asks[Paged])`. As with bodies, names come in
lowerCamelCase or snake_case, what is unknown passes by, an empty value is none, and of a single value that
comes several times the last one counts (REST spec, section 1).
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

LARGEST = 2**63 - 1
FAULT = "query"
"""What faults that are told here are called in lists of them: their text goes behind the parameter's name."""
_BOOLEANS = {"true": True, "1": True, "": True, "false": False, "0": False}
_UNSPECIFIED = ("", "UNSPECIFIED", "0")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FRACTION = re.compile(r"\.(\d+)")
_ORDERS = {"": False, "UNSPECIFIED": False, "ASC": False, "DESC": True, "0": False, "1": False, "2": True}
READ_HERE = ("/api/v1/", "/experiments/", "/resources/")
"""Paths whose queries are read here; others are passed on as they came."""

T = TypeVar("T")
Asks = Annotated[T, Query()]
"""`Asks[Model]`: what a route takes behind the question mark."""


NOTHING: Any = Field(default_factory=list)
"""What a list holds that is not given."""


class Asking(BaseModel):
    """Base of all queries."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


def snake_case(name: str) -> str:
    """A parameter's name as Python has it, of either spelling."""
    return _INNER_CAPITAL.sub("_", name).lower()


def respelled(query: bytes) -> bytes:
    """A query with all names in lowerCamelCase; values stay as they came."""
    return b"&".join(_respelled(*part.partition(b"=")) for part in query.split(b"&"))


def _respelled(name: bytes, equals: bytes, value: bytes) -> bytes:
    parts = unquote_plus(name.decode("latin-1")).split(".")
    return quote(".".join(to_camel(snake_case(part)) for part in parts)).encode() + equals + value


class Spelling:
    """Brings the names of queries into one spelling before they are read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["query_string"] and scope["path"].startswith(READ_HERE):
            scope = {**scope, "query_string": respelled(scope["query_string"])}
        await self._app(scope, receive, send)


def _fault(message: str) -> NoReturn:
    raise PydanticCustomError(FAULT, "{message}", {"message": message})


def _single(read: Callable[[str], Any], schema: dict[str, Any]) -> Any:
    """The validator and the schema of a single value, which is not given where it is empty."""

    def check(value: Any) -> Any:
        if value == "":
            raise PydanticUseDefault
        return read(value) if isinstance(value, str) else value

    return PlainValidator(check), WithJsonSchema(schema)


def _integer(text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        _fault(f"must be a whole number, not '{text[:40]}'")
    if not -LARGEST <= found <= LARGEST:
        _fault(f"must be a number of 64 bits, not {text[:40]}")
    return found


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        _fault(f"must be a number, not '{text[:40]}'")
    return found


def _instant(text: str) -> float:
    # Python reads up to microseconds, the API has nanoseconds.
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


def enum_names(name: str, given: Iterable[str], prefix: str, known: Iterable[str]) -> list[str]:
    """Values without their prefix; "unspecified" counts as not given.

    Raises `Refused` for what is not known.
    """
    try:
        return _names(given, prefix, tuple(known))
    except PydanticCustomError as error:
        raise invalid(f"{name} {error.message()}") from None


def _names(given: Iterable[str], prefix: str, known: tuple[str, ...]) -> list[str]:
    found = [text.removeprefix(prefix) for text in given]
    found = [one for one in found if one not in _UNSPECIFIED]
    for one in found:
        if one not in known:
            _fault(f"must be {prefix} and one of {', '.join(known)}, not '{one[:40]}'")
    return found


def _some_integers(values: list[str]) -> list[int]:
    return [_integer(value) if isinstance(value, str) else value for value in values]


Integer = Annotated[int, *_single(_integer, {"type": "integer"})]
Number = Annotated[float | None, *_single(_number, {"type": "number"})]
"""Finite."""
Instant = Annotated[float | None, *_single(_instant, {"type": "string", "format": "date-time"})]
"""A time in RFC 3339, as seconds since the epoch."""
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
"""Given without a value it is true."""
MaybeFlag = Annotated[bool | None, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
Integers = Annotated[
    list[int],
    PlainValidator(_some_integers),
    WithJsonSchema({"type": "array", "items": {"type": "integer"}}),
]
Order = Annotated[
    bool,
    PlainValidator(_order),
    WithJsonSchema({"type": "string", "enum": ["ORDER_BY_UNSPECIFIED", "ORDER_BY_ASC", "ORDER_BY_DESC"]}),
]
"""Whether it descends."""


def names(prefix: str, known: Iterable[str]) -> Any:
    """Says of a `list[str]` that it holds values of an enum, written with a prefix; it is read without."""
    all = tuple(known)
    items = {"type": "string", "enum": [prefix + one for one in ("UNSPECIFIED", *all)]}
    schema = WithJsonSchema({"type": "array", "items": items})
    return _Both(PlainValidator(functools.partial(_names, prefix=prefix, known=all)), schema)


def one_of(prefix: str, known: Iterable[str]) -> Any:
    """Says of a `str` that it is a value of an enum, written with a prefix; it is read without."""
    all = tuple(known)

    def check(value: str) -> str:
        found = _names([value], prefix, all)
        if not found:
            raise PydanticUseDefault
        return found[0]

    schema = WithJsonSchema({"type": "string", "enum": [prefix + one for one in ("UNSPECIFIED", *all)]})
    return _Both(PlainValidator(check), schema)


class _Both:
    """Two annotations that go together."""

    def __init__(self, check: PlainValidator, schema: WithJsonSchema) -> None:
        self._check, self._schema = check, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return self._check.__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        return self._schema.__get_pydantic_json_schema__(schema, handler)


class Limited(Asking):
    """How many are asked for."""

    limit: Integer = 0


class Ordered(Asking):
    """In which direction."""

    order_by: Order = False


class Paged(Limited, Ordered):
    """A part of a list."""

    offset: Integer = 0

    @property
    def window(self) -> Window:
        """Offset, limit and direction."""
        return Window(self.offset, self.limit, self.order_by)


class Grouped(Asking):
    """Of one group of metrics, or of all."""

    group: str = ""


class Periodic(Asking):
    """How often a stream may tell what has changed."""

    period_seconds: Integer = 0


class Followed(Periodic):
    """Whether to go on until what is asked for is over."""

    follow: Flag = False


class Users(Asking):
    """Of certain users, by name or id."""

    users: list[str] = NOTHING
    user_ids: Integers = NOTHING
