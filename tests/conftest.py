"""Fixtures that several folders share; each plug-in says what it starts."""

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "tests.fixtures.broker",
    "tests.fixtures.local_cluster",
    "tests.fixtures.postgres",
    "tests.fixtures.published",
]


# A busy machine is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_configure():
    """Let what tests start hear Ctrl-C: a shell that runs the tests in its background has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
