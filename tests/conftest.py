"""Fixtures that several folders share; each plug-in's docstring says what it starts."""

import functools
import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

pytest_plugins = [
    # First, because others import them.
    "tests.fixtures.watchdog",
    "tests.fixtures.fork_server",
    "tests.fixtures.forked_workers",
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


# The default backend of Keras is TensorFlow, which no test needs.
os.environ.setdefault("KERAS_BACKEND", "torch")

# httpx looks for it at each request. What is missing is searched for in every folder of packages, each time.
sys.modules.setdefault("sniffio", None)

# By default, structlog has rich draw a logged exception, with the code and the values around it: 0.1 s each.
*_first, _ = structlog.get_config()["processors"]
structlog.configure(
    [*_first, structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
)

# Being slow on a busy machine is not a failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


ROOT = Path(__file__).parent
OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""Of the garbage collector in test processes; usually 700."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect tests without the garbage collector, then exempt everything loaded so far from collection.

    Modules and tests live to the end. Scanning them again and again took a third of the collection time, and
    a large part of every full garbage collection during tests. What a test makes goes with it, mostly without
    the collector, which took a twelfth of the processes' time when it looked as often as it usually does.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        gc.enable()


def pytest_itemcollected(item):
    """Mark tests that start real processes (in `live` and `full`), and those of the full tier (in `full`)."""
    for name in _marks_of(item.path):
        item.add_marker(name)


@functools.cache
def _marks_of(path):
    folder = path.relative_to(ROOT).parts[0] if path.is_relative_to(ROOT) else ""
    return {"live": ("live",), "full": ("live", "full")}.get(folder, ())


def pytest_configure():
    """Make SIGINT work in programs that tests start: a shell ignores it for background jobs."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
