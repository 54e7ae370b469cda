"""The limits of a seed apply everywhere: code with the usual ones would send too much to this broker."""

import inspect
import sys

from det_contracts import limits
from tests.simulation import world
from tests.simulation.limits import SMALL, limits_in_force

assert world


def _services():
    """Modules of services and workers that the simulation runs."""
    return [m for name, m in list(sys.modules.items()) if name.startswith(("services.", "worker."))]


def test_nobody_who_writes_to_the_log_goes_by_another_size_of_events():
    knows = [module for module in _services() if "EVENT_BYTES" in vars(module)]
    assert len(knows) >= 3
    with limits_in_force(SMALL):
        assert [module.__name__ for module in knows if vars(module)["EVENT_BYTES"] != SMALL.event] == []


def test_no_size_is_fixed_where_a_function_is_defined():
    """A default argument is evaluated once, so the function could not be given another limit."""
    usual = {limits.MESSAGE_BYTES, limits.EVENT_BYTES, limits.STATED_BYTES}
    fixed = [
        f"{module.__name__}.{name}"
        for module in _services()
        for name, made in inspect.getmembers(module, inspect.isfunction)
        if usual & {default for default in made.__defaults__ or () if isinstance(default, int)}
    ]
    assert fixed == []
