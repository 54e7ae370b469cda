"""Shared body of every service's alembic `env.py`: runs its revisions on the given connection."""

from __future__ import annotations

from alembic import context


def run() -> None:
    """Run the pending revisions inside the caller's transaction."""
    context.configure(connection=context.config.attributes["connection"])
    with context.begin_transaction():
        context.run_migrations()
