"""Loads the broker's client, but not aiohttp, which it would load wherever that is installed.

It needs aiohttp only for addresses that begin with `ws:`, and no script of ours has one. Loaded all the same,
it takes 7 MB of each script and three tenths of what a cold script spends until it is connected. A program
that uses the client with such an address gets aiohttp at that moment.
"""

import importlib
import importlib.abc
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LATER = ("aiohttp", "multidict")


class _Hidden(importlib.abc.MetaPathFinder):
    """Hides these libraries from what one thread imports. Other threads find them."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in LATER and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is loaded when it is used", name=name)


@contextmanager
def _hiding() -> Iterator[None]:
    finder = _Hidden()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        # Another list: a thread that goes through the present one to import something would miss a finder.
        sys.meta_path = [other for other in sys.meta_path if other is not finder]


class _Later:
    """Stands for an installed library until something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


def load() -> None:
    """Load the client. Does nothing if it is loaded already."""
    if "nats" in sys.modules:
        return
    with _hiding():
        from nats.aio import transport
    for name in LATER:
        # None where it could not be imported.
        if getattr(transport, name, 0) is None and importlib.util.find_spec(name) is not None:
            setattr(transport, name, _Later(name))


load()
