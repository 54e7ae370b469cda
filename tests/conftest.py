"""Fixtures that several folders share; each plug-in says what it starts."""

pytest_plugins = [
    "tests.fixtures.broker",
    "tests.fixtures.local_cluster",
    "tests.fixtures.postgres",
    "tests.fixtures.published",
]
