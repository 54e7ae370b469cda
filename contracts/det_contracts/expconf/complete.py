"""Completes a user's configuration to the one that is stored (experiment configuration spec, section 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from det_contracts.expconf.experiment import EXPERIMENT
from det_contracts.expconf.faults import COMPLETENESS, SANITY, ConfigErrors, Faults
from det_contracts.expconf.json_data import to_json_data
from det_contracts.expconf.shims import strip_version

ROOT = "<config>"
NO_ENTRYPOINT = "managed experiments require entrypoint"


def complete(
    user: object,
    *,
    defaults: Sequence[Mapping[str, Any]] = (),
    seed: int,
    name: str,
    managed: bool = True,
) -> dict[str, Any]:
    """Return the configuration with all fields set. Completing the result again returns it unchanged.

    `defaults` are partial configurations, most specific first: template, task container defaults, checkpoint
    storage of the workspace, of the cluster. `seed` and `name` are used if the configuration has none. An
    experiment that is not `managed` runs off cluster and needs no entrypoint. Raises `ConfigErrors` with all
    failures of the first stage that has any.
    """
    config = normalize(user)
    for index, low in enumerate(defaults):
        config = EXPERIMENT.merge(config, normalize(low, f"<defaults[{index}]>"))
    # After the defaults, of which a template may give the entrypoint.
    # A string or a list of strings. What is blank runs nothing, and would pass for a success.
    if managed and not "".join(config.get("entrypoint") or ()).strip():
        raise ConfigErrors(COMPLETENESS, (f"{ROOT}.entrypoint: {NO_ENTRYPOINT}",))
    # As the least specific side, so that a seed of the user or of a template wins.
    generated = {"name": name, "reproducibility": {"experiment_seed": seed}}
    return fill_defaults(EXPERIMENT.merge(config, generated))


def fill_defaults(config: dict[str, Any]) -> dict[str, Any]:
    """Fill in the schema's defaults in a merged configuration, and check that nothing required is missing."""
    # Read again after merging: two valid sides may break a rule together. And once more after filling, with
    # the rules about what is required.
    filled: dict[str, Any] = EXPERIMENT.fill(_read(config, Faults()))
    return _read(filled, Faults(final=True))


def _read(config: dict[str, Any], faults: Faults) -> dict[str, Any]:
    read: dict[str, Any] = EXPERIMENT.read(config, ROOT, faults)
    faults.raise_any(COMPLETENESS)
    return read


def normalize(config: object, root: str = ROOT) -> dict[str, Any]:
    """Normalize a complete or partial configuration. Raises `ConfigErrors` if it is invalid."""
    faults = Faults()
    data = strip_version(to_json_data(config, root, faults), faults)
    read: dict[str, Any] = EXPERIMENT.read(data, root, faults)
    faults.raise_any(SANITY)
    return read


def sanity_check(user: object) -> None:
    """Raise `ConfigErrors` if a complete or partial configuration has wrong types, ranges or unions."""
    normalize(user)


def merge(high: Mapping[str, Any], low: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two partial configurations and normalize the result.

    `high` is the more specific side (section 3).
    """
    merged: dict[str, Any] = EXPERIMENT.merge(normalize(high), normalize(low))
    return merged
