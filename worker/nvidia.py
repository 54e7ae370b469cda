"""The bindings of NVIDIA's driver, for slots and utilisation."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

DRIVER: str | None = "libnvidia-ml.so.1"
"""The library of the driver, which the bindings load when they are initialised."""


def bindings() -> Any:
    """The module pynvml, not initialised; None without it (nvidia-ml-py) or without the driver."""
    with contextlib.suppress(OSError, ImportError):
        # First: the bindings take 5 MiB of memory, also where they then find no driver.
        ctypes.CDLL(DRIVER)
        import pynvml

        return pynvml
    return None
