"""Parses the `provider` block of a pool in the configuration file: how the pool gets workers.

provider:
  type: slurm                       # or: kubernetes, process
  slots_per_instance: 4             # slots that one worker will offer
  min_instances: 0
  max_instances: 8
  max_idle_agent_period: 20m        # a worker idle for this long is given back
  max_agent_starting_period: 20m    # a started worker must register within this time
  notice_period: 2m                 # tasks are asked to exit this long before the host goes
  slurm: {partition: gpu}           # engine-specific settings: docs/guides/slurm.md, kubernetes.md
"""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec

from det_contracts.events.scheduler import Provider, ProviderType

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?[smhd])+")
_PERIODS = {
    "max_idle_agent_period": "max_idle_s",
    "max_agent_starting_period": "max_starting_s",
    "notice_period": "notice_s",
}
_COUNTS = ("slots_per_instance", "min_instances", "max_instances")
ENGINES = get_args(ProviderType)
_FIELDS = {"type", *_COUNTS, *_PERIODS, *ENGINES}


def read_provider(at: str, settings: Any) -> tuple[Provider | None, list[str]]:
    """Return a pool's provider, or None, and the problems found.

    Each problem begins with its location `at`.
    """
    if settings is None:
        return None, []
    if not isinstance(settings, dict):
        return None, [f"{at}: expected a mapping with `type`, one of {', '.join(ENGINES)}"]
    field_names = ", ".join(sorted(_FIELDS))
    problems = [
        f"{at}.{name} is not a field; there are: {field_names}" for name in settings if name not in _FIELDS
    ]
    problems += [
        f"{at}.{name}: the type of this pool is {settings.get('type')}: remove it, or change the type"
        for name in ENGINES
        if name in settings and name != settings.get("type")
    ]
    fields: dict[str, Any] = {name: settings[name] for name in ("type", *_COUNTS) if name in settings}
    for name, field in _PERIODS.items():
        if name in settings:
            fields[field] = parse_seconds(settings[name])
            if fields[field] is None:
                problems.append(
                    f"{at}.{name}: '{settings[name]}' is not a duration such as 90s, 20m or 1h30m"
                )
    if problems:
        return None, problems
    try:
        provider = msgspec.convert(fields, Provider)
    except msgspec.ValidationError as error:
        return None, [f"{at}: {error}"]
    return provider, _value_problems(at, provider)


def _value_problems(at: str, provider: Provider) -> list[str]:
    problems = []
    if provider.slots_per_instance < 0:
        problems.append(f"{at}.slots_per_instance is {provider.slots_per_instance}: it must be 0 or more")
    if not 0 <= provider.min_instances <= provider.max_instances:
        problems.append(
            f"{at}: min_instances {provider.min_instances} and max_instances {provider.max_instances}: "
            "0 or more, and the first not greater than the second"
        )
    if provider.max_starting_s <= 0:
        problems.append(f"{at}.max_agent_starting_period must be more than 0")
    return problems


def parse_seconds(text: Any) -> float | None:
    """Parse a duration such as `1h30m` or a number of seconds. Returns None for anything else."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text) if text >= 0 else None
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        return None
    return sum(float(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"[\d.]+[smhd]", text))
