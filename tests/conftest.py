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
    """Let what tests start be interrupted: a shell that runs the tests in its background has that ignored."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
