"""Keeps a run's secrets out of its log.

Everybody who may read a log would otherwise get the token of a script that prints its environment, and could
act as its owner while it runs.
"""

from __future__ import annotations

import contextlib
import errno
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from det_contracts.expconf import MASK, secrets_of
from det_contracts.page_key import page_key
from services.kit.files import write_atomic

FILE = "hidden.json"
"""In a run's folder, which only the worker's user may read."""
MIN_LENGTH = 8
"""Shorter secrets are shown: they are parts of too much that is none."""
LOST = "a power loss has damaged the record of what must not be shown of it"


def save(run_dir: Path, config: Mapping[str, Any], tokens: Iterable[str]) -> None:
    """Record what the log of a run must not show: its tokens, the key of what it serves, and the secrets of
    its configuration.
    """
    tokens = list(filter(None, tokens))
    values = [*secrets_of(config).values(), *tokens, *map(page_key, tokens)]
    run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Not flushed, or each start would wait for the disk. Output may outlive a power loss that this does not:
    # it is then kept back. The name outlives it in any case, as file systems keep the order of names.
    write_atomic(run_dir / FILE, json.dumps(sorted(set(_texts(values)))).encode(), durable=False)


def are_saved(run_dir: Path) -> bool:
    """Whether it is recorded what the log of a run must not show. A power loss may have damaged it."""
    try:
        return _read(run_dir) is not None
    except ValueError:
        return False


class HiddenValues:
    """The secrets of one run."""

    def __init__(self, run_dir: Path) -> None:
        self._values: list[bytes] | None = None
        with contextlib.suppress(ValueError):
            # Without the file: prepared by an earlier version of the worker.
            texts = _read(run_dir) or []
            # The longest first: one may contain another.
            self._values = sorted((text.encode("utf-8", "replace") for text in texts), key=len)[::-1]

    def in_data(self, data: bytes) -> list[bytes]:
        """Those that occur in some output, so that lines are searched for no others.

        Raises `OSError` if they are not known: then none of it may be shown.
        """
        if self._values is None:
            raise OSError(errno.EIO, LOST)
        return [value for value in self._values if value in data]


def _read(run_dir: Path) -> list[str] | None:
    """What is recorded; None if there is no file. Raises `ValueError` if it is damaged."""
    try:
        texts: list[str] = json.loads((run_dir / FILE).read_bytes())
    except FileNotFoundError:
        return None
    return texts


def hide(line: bytes, values: Iterable[bytes]) -> bytes:
    """Return a line with each of these values replaced by asterisks.

    >>> hide(b"export KEY=abcdefgh", [b"abcdefgh"])
    b'export KEY=********'
    """
    for value in values:
        line = line.replace(value, MASK.encode())
    return line


def _texts(values: Iterable[object]) -> Iterable[str]:
    """The lines of all texts in some secrets, as output has them; a key in PEM format has several."""
    for value in values:
        if isinstance(value, str):
            yield from (line for line in map(str.strip, value.splitlines()) if len(line) >= MIN_LENGTH)
        elif isinstance(value, Mapping):
            yield from _texts(value.values())
