"""New hyperparameters near those of a successful trial, for population-based training."""

from __future__ import annotations

from typing import Any

import msgspec

from det_contracts.expconf import is_group
from services.searcher.methods.rng import Rng
from services.searcher.methods.sampling import sample_value


class Explore(msgspec.Struct, frozen=True):
    """How far children differ from their parents."""

    resample_probability: float
    """Probability of drawing a hyperparameter anew from its whole range."""
    perturb_factor: float
    """Relative amount by which a number otherwise grows or shrinks. A category stays the same."""

    def child_of(self, hparams: dict[str, Any], space: dict[str, Any], rng: Rng) -> dict[str, Any]:
        """Hyperparameters for a child. Names ascending and groups depth-first, as when trials are drawn."""
        return {
            name: self.child_of(hparams[name], space[name], rng)
            if is_group(space[name])
            else self._child_value(hparams[name], space[name], rng)
            for name in sorted(space)
        }

    def _child_value(self, value: Any, spec: Any, rng: Rng) -> Any:
        if not isinstance(spec, dict) or spec["type"] == "const":
            return value
        if rng.unit() < self.resample_probability:
            return sample_value(spec, rng)
        if spec["type"] == "categorical":
            return value
        return _clamp(spec, self._perturb(value, rng))

    def _perturb(self, value: Any, rng: Rng) -> Any:
        sign = 1 if rng.below(2) else -1
        if isinstance(value, int):
            # Otherwise a small number would round back to itself.
            return value + sign * max(1, round(abs(value) * self.perturb_factor))
        return value * (1 + sign * self.perturb_factor)


def _clamp(spec: dict[str, Any], value: Any) -> Any:
    bounds = [spec["minval"], spec["maxval"]]
    if spec["type"] == "log":
        bounds = sorted(float(spec["base"] ** end) for end in bounds)
    kind = int if spec["type"] == "int" else float
    return kind(min(max(value, bounds[0]), bounds[1]))
