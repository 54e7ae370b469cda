"""Random number generators: each fork reseeds randomly seeded ones and keeps explicitly seeded ones."""

from __future__ import annotations

import contextlib
import gc
import random
import sys

MAX_CHOSEN_SEED = 2**32
"""Seeds that people choose are smaller; random seeds almost never are."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Generators:
    """The generators that modules share and those that they keep, tracked from before the first import."""

    def __init__(self) -> None:
        self._shared: dict[str, object] = {}
        self._seeded_explicitly: list[random.Random] = []
        """Seeded explicitly by their creators: the same in every process."""
        self._to_reseed: list[random.Random] = []
        self.record_new()

    @contextlib.contextmanager
    def track_seeding(self) -> Iterator[None]:
        """Record which of Python's generators are created with a seed."""
        seed = random.Random.seed

        def recording_seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            seed(generator, a, version)
            if a is not None:
                self._seeded_explicitly.append(generator)

        random.Random.seed = recording_seed  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            random.Random.seed = seed  # type: ignore[method-assign]

    def record_new(self) -> None:
        """Record the initial state of generators that came with a module, before anything uses them."""
        for name, state in _STATES.items():
            if name in sys.modules and name not in self._shared:
                self._shared[name] = state(sys.modules[name], True)

    def problem(self) -> str:
        """Why forks would differ from fresh processes, or "". Also collects the generators to reseed."""
        seeded = [n for n, state in self._shared.items() if _STATES[n](sys.modules[n], False) != state]
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
                candidate is generator for generator in self._seeded_explicitly
            ):
                self._to_reseed.append(candidate)
            elif (
                kinds
                and issubclass(type(candidate), kinds)
                and not any(candidate is generator for generator in own_generators)
            ):
                return f"something keeps a {type(candidate).__name__} of numpy's from its import on"
        return ""

    def reseed(self) -> None:
        """In a fork: reseed randomly, as all of these were when they were created."""
        for generator in self._to_reseed:
            generator.seed()
        if "numpy.random" in self._shared:
            numpy_random = sys.modules["numpy.random"]
            # `seed()` would drop the reference to the entropy source, which a fresh generator has.
            numpy_random.mtrand._rand._bit_generator.state = numpy_random.MT19937().state
        if "torch" in self._shared:
            sys.modules["torch"].default_generator.seed()


def _python_state(module: Any, is_first: bool) -> object:
    if is_first:
        # Before the first number the state is a special one; later draws leave this part unchanged.
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
    # It drops the reference to the entropy source once it is given a number.
    return getattr(generator, "seed_seq", getattr(generator, "_seed_seq", None)) is None


def _torch_is_seeded(module: Any) -> bool:
    return bool(module.initial_seed() < MAX_CHOSEN_SEED)


_STATES: dict[str, Callable[[Any, bool], object]] = {
    "random": _python_state,
    "numpy.random": _numpy_state,
    "torch": _torch_state,
}
_SEEDED: dict[str, Callable[[Any], bool]] = {"numpy.random": _numpy_is_seeded, "torch": _torch_is_seeded}
"""If the module that seeds is also the one that loads them, there is no earlier state."""
