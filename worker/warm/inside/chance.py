"""Generators of random numbers: what begins with chance begins anew in each fork; what is seeded does not."""

from __future__ import annotations

import contextlib
import gc
import random
import sys

CHOSEN = 2**32
"""Seeds that people choose are smaller, and those that come by chance hardly ever."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Generators:
    """Those that modules share, and those that they keep, from before anything was imported on."""

    def __init__(self) -> None:
        self._shared: dict[str, object] = {}
        self._given: list[random.Random] = []
        """Seeded by who made them: the same in every process."""
        self._kept: list[random.Random] = []
        self.look()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Notice which of Python's are made with a seed."""
        seed = random.Random.seed

        def noticed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            seed(generator, a, version)
            if a is not None:
                self._given.append(generator)

        random.Random.seed = noticed  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            random.Random.seed = seed  # type: ignore[method-assign]

    def look(self) -> None:
        """See those that have come with a module, as they are when nobody has touched them."""
        for name, state in _STATES.items():
            if name in sys.modules and name not in self._shared:
                self._shared[name] = state(sys.modules[name], True)

    def problem(self) -> str:
        """Why forks would not be as fresh processes are, if so. Collects what is to be renewed."""
        seeded = [n for n, seen in self._shared.items() if _STATES[n](sys.modules[n], False) != seen]
        seeded += [
            name
            for name, is_seeded in _SEEDED.items()
            if name in self._shared and is_seeded(sys.modules[name])
        ]
        if seeded:
            return f"something seeds the generator of {seeded[0]} while it is imported"
        numpy = sys.modules.get("numpy.random")
        kinds = (numpy.Generator, numpy.RandomState, numpy.BitGenerator) if numpy is not None else ()
        own_generators = [numpy.mtrand._rand, numpy.mtrand._rand._bit_generator] if numpy is not None else []
        for candidate in gc.get_objects():
            if type(candidate) is random.Random and not any(
                candidate is generator for generator in self._given
            ):
                self._kept.append(candidate)
            elif (
                kinds
                and issubclass(type(candidate), kinds)
                and not any(candidate is generator for generator in own_generators)
            ):
                return f"something keeps a {type(candidate).__name__} of numpy's from its import on"
        return ""

    def renew(self) -> None:
        """In a fork: begin anew with chance, as all of these did when they were made."""
        for generator in self._kept:
            generator.seed()
        if "numpy.random" in self._shared:
            numbers = sys.modules["numpy.random"]
            # `seed()` would forget where chance came from, and a fresh one has that.
            numbers.mtrand._rand._bit_generator.state = numbers.MT19937().state
        if "torch" in self._shared:
            sys.modules["torch"].default_generator.seed()


def _python_state(module: Any, is_first: bool) -> object:
    if is_first:
        # Before the first number there is a state of its own; from then on draws leave this part as it is.
        module.random()
    return module.getstate()[1][:-1]


def _numpy_state(module: Any, is_first: bool) -> object:
    if is_first:
        module.random()
    return module.get_state()[1].tobytes()


def _torch_state(module: Any, _: bool) -> object:
    return bytes(module.get_rng_state().tolist())


def _numpy_is_seeded(module: Any) -> bool:
    generator = module.mtrand._rand._bit_generator
    # It forgets where chance came from once a number is given.
    return getattr(generator, "seed_seq", getattr(generator, "_seed_seq", None)) is None


def _torch_is_seeded(module: Any) -> bool:
    return bool(module.initial_seed() < CHOSEN)


_STATES: dict[str, Callable[[Any, bool], object]] = {
    "random": _python_state,
    "numpy.random": _numpy_state,
    "torch": _torch_state,
}
_SEEDED: dict[str, Callable[[Any], bool]] = {"numpy.random": _numpy_is_seeded, "torch": _torch_is_seeded}
"""Where the module that seeds is the one that loads them, there is no state from before."""
