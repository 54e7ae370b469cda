"""Search methods: pure state machines that decide which trials exist and how far each trains."""

from services.searcher.methods.choose import UnknownVersion, newest_version, unavailable_reason
from services.searcher.methods.protocol import (
    Close,
    Create,
    Event,
    MethodError,
    Operation,
    Proposal,
    Shutdown,
    TrialClosed,
    TrialCreated,
    TrialExitedEarly,
    TrialProgress,
    ValidateAfter,
    ValidationCompleted,
)
from services.searcher.methods.search import Search, progress, propose, start, step
from services.searcher.methods.simulate import Simulation, breakdown, simulate

__all__ = [
    "Close",
    "Create",
    "Event",
    "MethodError",
    "Operation",
    "Proposal",
    "Search",
    "Shutdown",
    "Simulation",
    "TrialClosed",
    "TrialCreated",
    "TrialExitedEarly",
    "TrialProgress",
    "UnknownVersion",
    "ValidateAfter",
    "ValidationCompleted",
    "breakdown",
    "newest_version",
    "progress",
    "propose",
    "simulate",
    "start",
    "step",
    "unavailable_reason",
]
