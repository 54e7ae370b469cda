"""Fixtures that several folders share; each plug-in says what it starts."""

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    # First: others import them.
    "tests.fixtures.watchdog",
    "tests.fixtures.fork_server",
    "tests.fixtures.broker",
    "tests.fixtures.gateways",
    "tests.fixtures.clusters",
    "tests.fixtures.durations",
    "tests.fixtures.failures",
    "tests.fixtures.postgres",
    "tests.fixtures.published",
    "tests.fixtures.small_disk",
    "tests.fixtures.three_brokers",
    "tests.fixtures.wheels",
]


# Keras would compute with TensorFlow, which no test needs.
os.environ.setdefault("KERAS_BACKEND", "torch")

# A busy machine is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


ROOT = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests without the garbage collector, and let it leave alone afterwards what is loaded by then.

    Modules and tests stay to the end. To look through all of them again and again took a third of the time of
    collecting, and of every whole collection during tests a large part.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item):
    """All in `live` and `full` starts real servers and processes, and all in `full` is for the full tier."""
    folder = item.path.relative_to(ROOT).parts[0] if item.path.is_relative_to(ROOT) else ""
    for name in {"live": ("live",), "full": ("live", "full")}.get(folder, ()):
        item.add_marker(name)


def pytest_configure():
    """Let what tests start be interrupted: a shell that runs the tests in its background has that ignored."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
