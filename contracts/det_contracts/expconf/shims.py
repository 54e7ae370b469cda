"""Compatibility with older configurations, at the top level."""

from __future__ import annotations

from typing import Any

from det_contracts.expconf.faults import Faults, format_value


def strip_version(config: Any, faults: Faults) -> Any:
    """Return the configuration without its `version`, which must be 0 or absent.

    See section 1 of the configuration spec. Older forms of single fields are handled with the field: `gpu` in
    environment.py, labels in experiment.py.
    """
    if not isinstance(config, dict) or "version" not in config:
        return config
    version = config["version"]
    # False equals 0 in Python.
    if version is not None and (version != 0 or isinstance(version, bool)):
        faults.errors.append(
            f"invalid version: {version if isinstance(version, int) else format_value(version)}"
        )
    return {key: item for key, item in config.items() if key != "version"}
