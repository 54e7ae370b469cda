"""Alembic's entry point. The kit runs it on the service's own connection."""

from services.kit.migrations_env import run

run()
