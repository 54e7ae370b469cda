"""What the log says of people, of what they are known by, and of the places where they file things."""

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
