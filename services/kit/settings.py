"""Settings from the environment. All problems are reported at once.

A settings record is a frozen dataclass; field `nats_url` is read from `STEADFAST_NATS_URL`. Types are `str`,
`int`, `float`, `bool` and `Path`, each also `| None`.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

T = TypeVar("T")
PREFIX = "STEADFAST_"
_YES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


class BadSettings(Exception):
    """The environment is invalid. The text lists every problem with its variable."""


@dataclasses.dataclass(frozen=True)
class ServiceSettings:
    """Settings common to all services."""

    nats_url: str = "nats://127.0.0.1:4222"
    """One or several addresses, separated by commas."""
    nats_credentials: Path | None = None
    """A NATS credentials file; none for a broker without accounts."""
    tls_ca: Path | None = None
    """PEM file of authorities trusted for broker (`tls://`) and S3 store, in addition to the system's."""
    tls_cert: Path | None = None
    """PEM file of the certificate this process presents, with intermediates; none: plain HTTP."""
    tls_key: Path | None = None
    """The certificate's private key."""
    health_tls: bool = False
    """Whether the health port uses TLS too."""
    database_url: str = "sqlite://"
    """SQLAlchemy URL. With PostgreSQL, each service keeps its tables in a schema named after it."""
    health_port: int | None = None
    """Port for /healthz and /metrics; none to disable them, 0 for any free port."""
    health_host: str = "127.0.0.1"
    """Address of that port; set it if Prometheus runs on another machine."""
    stream_replicas: int = 1
    """Replicas of each stream: 1, or 3 in a NATS cluster."""
    stream_keep_mib: int = 0
    """Maximum size of REPORTS and of LOGS; 0: 16 GiB. Never more than an eighth of `log_disk`."""
    archive: str = ""
    """Where old parts of CONTROL are archived: an absolute directory, or s3://bucket[/prefix]; empty: all of
    it stays in the broker. All services need the same value."""
    s3_endpoint_url: str | None = None
    """Endpoint of the S3 service of archive and contexts."""
    s3_access_key: str = ""
    """Its access key."""
    s3_secret_key: str = ""
    """Its secret key."""
    log_disk: Path | None = None
    """Where the broker stores the log, if this host can see it: its free space is monitored."""
    disk_reserve_mib: int = 0
    """Free space reserved for running work; 0: a twentieth of each disk, at most 2 GiB."""
    log_format: str = "console"
    """`console` or `json`."""
    log_level: str = "INFO"
    """Minimum level that is logged: DEBUG, INFO, WARNING or ERROR."""
    loop_blocked_s: float = 0.5
    """A longer stall of the event loop is logged with its stack; 0 disables this and `stuck_s` for stalls."""
    log_lags_s: float = 5.0
    """A longer delay in folding or saving known messages is reported; 0: never."""
    stuck_s: float = 60.0
    """A process exits if its event loop, or its reading of the log, stalls for longer; 0: never."""


def _boolean(text: str) -> bool:
    try:
        return _YES[text.lower()]
    except KeyError:
        raise ValueError("expected one of " + ", ".join(_YES)) from None


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("expected a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("expected a number") from None


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: _whole_number,
    float: _number,
    bool: _boolean,
    Path: Path,
}


def field_types(record: type[Any]) -> Mapping[str, Any]:
    """Map each field of a settings record to its type."""
    return _types_of(cast(Hashable, record))


@cache
def _types_of(record: Any) -> Mapping[str, Any]:
    # Annotations are strings, and evaluating them takes a millisecond.
    return typing.get_type_hints(record)


def load(record: type[T], environment: Mapping[str, str]) -> T:
    """Read a settings record. Raises `BadSettings` with every problem found."""
    types = field_types(record)
    values: dict[str, Any] = {}
    problems = []
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        variable = PREFIX + field.name.upper()
        text = environment.get(variable, "")
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        # An empty variable counts as missing: compose files and charts set all of them, some to nothing.
        if not text:
            if required:
                problems.append(f"{variable} is not set")
            continue
        kinds = [t for t in typing.get_args(types[field.name]) if t is not type(None)] or [types[field.name]]
        try:
            values[field.name] = _PARSERS[kinds[0]](text)
        except ValueError as error:
            problems.append(f"{variable}='{text}': {error}")
    if problems:
        raise BadSettings("invalid settings:\n" + "\n".join(f"  {p}" for p in problems))
    return record(**values)
