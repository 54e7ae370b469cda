"""Utilities that existing clients import from here (core API spec, names under `determined.common`)."""

from __future__ import annotations

import functools
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TextIO, TypeVar

from determined import yamlfile

_LEGACY_TRAINING = "training"
_LEGACY_VALIDATION = "validation"
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def safe_load_yaml_with_exceptions(yaml_file: TextIO | str) -> Any:
    """Parse an open YAML file or a text. Raises `yamlfile.YamlProblem`, a ValueError with line and column."""
    text = yaml_file if isinstance(yaml_file, str) else yaml_file.read()
    return yamlfile.parse(text, str(getattr(yaml_file, "name", "the YAML text")))


def get_default_master_address() -> str:
    """Return the default address of the master: `DET_MASTER`, else `DET_MASTER_ADDR`, else this host."""
    return os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR") or "localhost:8080"


def get_config_path() -> Path:
    """Return the directory where the client keeps tokens and certificates."""
    from determined.transport.token_store import config_dir

    return config_dir()


def get_det_username_from_env() -> str | None:
    """Return `DET_USER`."""
    return os.environ.get("DET_USER")


def get_det_password_from_env() -> str | None:
    """Return `DET_PASS`."""
    return os.environ.get("DET_PASS")


def get_det_user_token_from_env() -> str | None:
    """Return `DET_USER_TOKEN`."""
    return os.environ.get("DET_USER_TOKEN")


def get_max_retries_config() -> Any:
    """Return how often repeatable requests are retried, as a urllib3 Retry."""
    from urllib3.util.retry import Retry

    from determined.transport.rest import default_pauses

    pauses = default_pauses()
    return Retry(total=len(pauses), backoff_factor=pauses[0] if pauses else 0)


def debug_mode() -> bool:
    """Whether `DET_DEBUG` enables tracebacks."""
    return os.environ.get("DET_DEBUG", "").lower() in ("true", "1", "yes")


def chunks(lst: Sequence[_Result], chunk_size: int) -> Iterator[Sequence[_Result]]:
    """Yield the list in chunks, the last of which may be shorter."""
    for start in range(0, len(lst), chunk_size):
        yield lst[start : start + chunk_size]


def sizeof_fmt(val: float) -> str:
    """Format a number of bytes for display: `2.0KB`."""
    for unit in ("", "K", "M", "G", "T", "P", "E", "Z"):
        if abs(val) < 1024:
            return f"{val:.1f}{unit}B"
        val /= 1024
    return f"{val:.1f}YB"


def parse_protobuf_timestamp(ts: str) -> datetime:
    """Parse a time in the REST API's format."""
    from determined.transport import instant

    return instant.parse(ts)


def preserve_random_state(fn: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
    """Decorator that preserves the state of Python's random generator."""

    @functools.wraps(fn)
    def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        state = random.getstate()
        try:
            return fn(*args, **kwargs)
        finally:
            random.setstate(state)

    return call


def deprecated(
    message: str | None = None,
) -> Callable[[Callable[_Params, _Result]], Callable[_Params, _Result]]:
    """Decorator that makes a function issue a FutureWarning that it is deprecated."""

    def decorate(fn: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
        @functools.wraps(fn)
        def call(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
            warnings.warn(
                f"{fn.__name__} is old{f': {message}' if message else ''}", FutureWarning, stacklevel=2
            )
            return fn(*args, **kwargs)

        return call

    return decorate


def wait_for(
    predicate: Callable[[], tuple[bool, _Result]], timeout: int = 60, interval: float = 0.1
) -> _Result:
    """Poll until the first returned value is True, then return the second.

    TimeoutError after `timeout` seconds.
    """
    end = time.monotonic() + timeout
    while True:
        done, value = predicate()
        if done:
            return value
        if time.monotonic() >= end:
            raise TimeoutError("timed out waiting for predicate")
        time.sleep(interval)
