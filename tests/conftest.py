"""Fixtures that several folders share; each plug-in says what it starts."""

pytest_plugins = ["tests.fixtures.local_cluster"]
