"""The resources of a trial (experiment configuration spec, section 2.5)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from det_contracts.expconf.composites import Field, ListOf, Record, append_missing_by, rule
from det_contracts.expconf.scalars import BadForm, Boolean, Integer, MultiForm, Number, Text

BAD_SIZE = "must be a valid memory size"
BAD_DEVICE = "is neither a list of --device strings nor a map containing host_path, container_path, and mode"
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kmgtp])i?)?b?", re.IGNORECASE)


DEVICE = Record(
    {
        "host_path": Field(Text()),
        "container_path": Field(Text()),
        "mode": Field(Text(), "mrw"),
    }
)


def size_bytes(value: Any) -> Any:
    """Convert a size such as `64m` or `1.5 GiB` to bytes. Suffixes are powers of 1024. Raises `BadForm`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadForm(BAD_SIZE)
    if not isinstance(value, str):
        return value
    match = SIZE.fullmatch(value)
    if match is None:
        raise BadForm(BAD_SIZE)
    power = "kmgtp".index(match[2].lower()) + 1 if match[2] else 0
    # Not a float, which would give 1.1t some bytes more or less.
    return int(Decimal(match[1]) * 1024**power)


def parse_device(value: Any) -> Any:
    """Convert a device from `host:container[:mode]` or a map to a map. Raises `BadForm`."""
    if isinstance(value, dict):
        named = {key for key, item in value.items() if item is not None}
        if not {"host_path", "container_path"} <= named or not named <= {*DEVICE.fields}:
            raise BadForm(BAD_DEVICE)
        return value
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) not in (2, 3) or "" in parts:
        raise BadForm(BAD_DEVICE)
    return dict(zip(("host_path", "container_path", "mode"), parts, strict=False))


def _within_max_slots(resources: dict[str, Any]) -> bool:
    limit, wanted = resources.get("max_slots"), resources.get("slots_per_trial")
    return limit is None or wanted is None or wanted <= limit


RESOURCES = Record(
    {
        "slots_per_trial": Field(Integer(0), 1),
        "max_slots": Field(Integer(0)),
        "resource_pool": Field(Text(), ""),
        "priority": Field(Integer(1, 99)),
        "weight": Field(Number(low=0), 1),
        "shm_size": Field(MultiForm(size_bytes, Integer(0))),
        "devices": Field(ListOf(MultiForm(parse_device, DEVICE), append_missing_by("container_path")), []),
        "slots": Field(Integer(0)),
        "native_parallel": Field(Boolean(), False),
        "agent_label": Field(Text()),
    },
    (
        rule(
            "slots_per_trial max_slots",
            "slots_per_trial must not be greater than max_slots, or no trial could ever start",
            _within_max_slots,
            final=True,
        ),
    ),
)
