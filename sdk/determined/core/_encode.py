"""Converts user values to plain JSON values (core API spec, section 6).

Encoding runs in the caller's thread. This takes a snapshot, so the training loop may modify its tensors
afterwards, and errors are raised at the call that reported the value.
"""

import datetime
import enum
import numbers
import uuid
from collections.abc import Mapping
from math import isfinite
from typing import Any

from det_contracts.nesting import VALUE_LEVELS
from det_contracts.reports import MAX_METRICS_PER_REPORT

_AS_IT_IS = frozenset({int, bool, type(None)})


def encode_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plain copy of a dict of metrics. Raises TypeError naming a metric that cannot be encoded.

    Raises ValueError for more than 100,000 metrics. A few floats cost about a microsecond, because values
    that are already plain need no function call.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics must be a dict of name to value, not {type(metrics).__name__}")
    if len(metrics) > MAX_METRICS_PER_REPORT:
        raise ValueError(
            f"a report may have at most {MAX_METRICS_PER_REPORT} metrics, not {len(metrics)}; "
            "store such numbers in a file, with a checkpoint"
        )
    encoded: dict[str, Any] = {}
    for name, value in metrics.items():
        kind = type(value)
        if type(name) is not str or not name.isascii():
            name = _encode_key(name)
        if kind in _AS_IT_IS or (kind is float and isfinite(value)):
            encoded[name] = value
        else:
            try:
                encoded[name] = encode(value)
            except TypeError as e:
                raise TypeError(f"metric {name!r}: {e}") from None
    return encoded


def encode_as(name: str, value: Any) -> Any:
    """Encode the argument `name`. Raises TypeError naming it if the value has no JSON form."""
    try:
        return encode(value)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def encode(value: Any, level: int = 0) -> Any:
    """Return `value` as str, bool, int, finite float, None, list or dict with str keys.

    NaN and infinities become the strings `NaN`, `Infinity` and `-Infinity`. NumPy and torch arrays and
    tensors become nested lists, and zero-dimensional ones become numbers. Raises TypeError for anything else,
    and for nesting deeper than 100 levels.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _encode_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _encode_float(value)
    if level >= VALUE_LEVELS:
        raise TypeError(f"it nests deeper than {VALUE_LEVELS} levels")
    if isinstance(value, list | tuple):
        return [encode(item, level + 1) for item in value]
    if isinstance(value, Mapping):
        return {_encode_key(key): encode(item, level + 1) for key, item in value.items()}
    return _encode_object(value, level)


def _encode_object(value: Any, level: int) -> Any:
    # First, since a class says by it how it wants to be stored, whatever else it is.
    if hasattr(value, "__json__"):
        return encode(value.__json__(), level + 1)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if _is_array(value) and (elements := _elements(value)) is not value:
        return encode(elements, level)
    if isinstance(value, numbers.Integral):
        return int(value)
    # For Python every real number is a complex one, too; those of NumPy that are not real would lose a part.
    is_real = isinstance(value, numbers.Real) or not isinstance(value, numbers.Complex)
    if is_real and isinstance(value, numbers.Number) and hasattr(value, "__float__"):
        return _encode_float(float(value))
    raise _refusal(value)


def _is_array(value: Any) -> bool:
    """Whether NumPy or torch created the value. Checked without importing either."""
    return any(
        cls.__module__.partition(".")[0] in ("numpy", "torch") and hasattr(cls, "tolist")
        for cls in type(value).__mro__
    )


def _refusal(value: Any, because: str = "") -> TypeError:
    return TypeError(f"Unserializable object {repr(value)[:100]} of type {type(value).__name__}{because}")


def _elements(value: Any) -> Any:
    """Return an array or tensor as Python's numbers and lists. NumPy's longdouble returns itself."""
    try:
        elements = value.tolist()
    # Of tensors without data, such as those of the device "meta".
    except RuntimeError as error:
        raise _refusal(value, f": {error}") from None
    return value if type(elements) is type(value) else elements


def _encode_float(value: float) -> float | str:
    if isfinite(value):
        return float(value)
    # NaN and the infinities have no form in JSON.
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _encode_text(value: str) -> str:
    # Lone surrogates, for example from undecodable file names, have no UTF-8 form. For a str-valued Enum,
    # str() would return the member name.
    return str.__str__(value) if value.isascii() else value.encode("utf-8", "replace").decode()


def _encode_key(key: Any) -> str:
    if isinstance(key, str):
        return _encode_text(key)
    plain = encode(key)
    if plain is None or isinstance(plain, bool):
        return {None: "null", True: "true", False: "false"}[plain]
    if isinstance(plain, str | int | float):
        return str(plain)
    raise TypeError(f"Unserializable object {repr(key)[:100]} as a name; use a str")
