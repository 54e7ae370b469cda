"""Reading of request bodies, and the messages about invalid ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from det_contracts.problems import invalid

LIMIT_BYTES = 96 << 20
"""Maximum size of a request that uploads files or goes to a task."""
MAX_FAULTS = 20
"""Maximum number of faults reported per request."""
Shape = TypeVar("Shape", bound=BaseModel)


def describe_faults(problems: Iterable[Mapping[str, Any]], *, skip: int = 0) -> str:
    """Describe validation errors with their paths, whose first `skip` parts are omitted."""
    some = list(islice(problems, MAX_FAULTS + 1))
    faults = [f"{_path(problem['loc'][skip:])}: {_message(problem)}" for problem in some[:MAX_FAULTS]]
    return "; ".join([*faults, "and more"] if len(some) > MAX_FAULTS else faults)


def _message(problem: Mapping[str, Any]) -> str:
    # JSON has no tuples.
    return "Input should be a valid list" if problem["type"] == "tuple_type" else str(problem["msg"])


def _path(parts: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in parts) or "the request"


def read_body(shape: type[Shape], body: bytes) -> Shape:
    """Parse a body that may be large. Raises `Refused` (400). Takes seconds for 100 MiB."""
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise invalid(describe_faults(error.errors(include_url=False, include_input=False))) from None
