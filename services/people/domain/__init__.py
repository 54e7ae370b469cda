"""The folded state of users, their credentials, and the workspaces and projects they use."""

from services.people.domain.fold import FOLDS
from services.people.domain.state import (
    ClosedSession,
    Highest,
    Kept,
    KnownAs,
    OpenSession,
    People,
    SessionFloor,
    Template,
    User,
)

__all__ = [
    "FOLDS",
    "ClosedSession",
    "Highest",
    "Kept",
    "KnownAs",
    "OpenSession",
    "People",
    "SessionFloor",
    "Template",
    "User",
]
