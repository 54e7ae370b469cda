"""Writes a golden file for each event version that has none. Files that exist are never touched.

python tests/golden/write_missing.py
"""

import typing
from pathlib import Path

import msgspec

import det_contracts.events  # noqa: F401 - registers every event
from det_contracts import codec

HERE = Path(__file__).parent


def example(kind: typing.Any) -> typing.Any:
    """A plausible value of a type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    plain = {str: "text", int: 1, float: 1.5, bool: True, typing.Any: 0.25}
    if kind in plain:
        return plain[kind]
    if origin is typing.Literal:
        return args[0]
    if origin in (tuple, list):
        return [example(args[0])]
    if origin is dict:
        return {"key": example(args[1])}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(**{name: msgspec.convert(example(hint), hint) for name, hint in hints.items()})
    return example(next(arg for arg in args if arg is not type(None)))


def main() -> None:
    for kind in codec.kinds():
        path = HERE / f"{kind.name}.v{kind.version}.json"
        if not path.exists():
            path.write_bytes(
                codec.encode(example(kind.record), id="event-1", actor="test", at=1e9, cause="event-0")
            )
            print("wrote", path.name)


if __name__ == "__main__":
    main()
