"""What a seed decides at the start: how bad this world is, and how large."""

import random
from dataclasses import dataclass

from tests.simulation.limits import ALL, USUAL, Limits

KINDS = (
    "crash", "instant", "power", "lease", "clock", "full", "worker", "host", "partition", "deaf", "resize",
    "slots", "losses", "repeats", "stalls", "scripts", "users", "limits", "space", "permission", "leader",
    "follower", "batches", "closed", "stopped", "twin",
    "gateway", "clients", "intake", "provisioner", "engine",
)  # fmt: skip
"""Everything that can be left out, to see whether a seed still fails without it."""


@dataclass(frozen=True)
class Plan:
    """One seed's world."""

    seed: int
    off: frozenset = frozenset()
    lag_s: float = 0.02
    losses: float = 0.0
    repeats: float = 0.0
    stalls: float = 0.0
    fault_every_s: float = 5.0
    user_every_s: float = 8.0
    step_s: float = 1.0
    """Roughly how long scripts take for a step."""
    steps: int = 300
    limits: Limits = USUAL
    gateways: int = 0
    share: bool = False
    """Whether all gateways write to one database."""
    intakes: int = 1
    grows: bool = False
    """Whether a pool gets workers by itself."""

    def chance(self, name):
        """A random stream of its own, so that leaving one thing out does not shift all the others."""
        return random.Random(f"{self.seed}/{name}")


def plan_of(seed, off=(), steps=300):
    """The plan of a seed, without the kinds of trouble in `off`."""
    off = frozenset(off)
    chance = random.Random(f"{seed}/plan")

    def share(kind, most):
        value = chance.choice((0.0, most / 4, most))
        return 0.0 if kind in off else value

    return Plan(
        seed=seed,
        off=off,
        lag_s=chance.choice((0.005, 0.02, 0.1)),
        losses=share("losses", 0.05),
        repeats=share("repeats", 0.25),
        stalls=share("stalls", 0.02),
        fault_every_s=chance.choice((3.0, 8.0, 20.0)),
        user_every_s=chance.choice((3.0, 8.0, 20.0)),
        step_s=chance.choice((1.0, 1.0, 4.0)),
        steps=steps,
        share=random.Random(f"{seed}/share").random() < 0.5,
        gateways=0 if "gateway" in off else random.Random(f"{seed}/gateway").choice((0, 0, 0, 1, 2)),
        grows="provisioner" not in off and random.Random(f"{seed}/provisioner").random() < 0.3,
        intakes=1 if "intake" in off else random.Random(f"{seed}/intake").choice((1, 2, 3)),
        limits=USUAL if "limits" in off else random.Random(f"{seed}/limits").choice(ALL),
    )
