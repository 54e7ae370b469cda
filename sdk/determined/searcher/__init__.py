"""Searching with code of one's own: search methods, and runners that carry them out (searchers spec, 8)."""

from determined.searcher._method import ExitedReason, SearcherState, SearchMethod
from determined.searcher._operations import Close, Create, Operation, Progress, Shutdown, ValidateAfter
from determined.searcher._runner import LocalSearchRunner, RemoteSearchRunner, SearchRunner

__all__ = [
    "Close",
    "Create",
    "ExitedReason",
    "LocalSearchRunner",
    "Operation",
    "Progress",
    "RemoteSearchRunner",
    "SearchMethod",
    "SearchRunner",
    "SearcherState",
    "Shutdown",
    "ValidateAfter",
]
