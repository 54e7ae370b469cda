"""Custom search methods, and the runners that execute them (searchers spec, 8)."""

from determined.searcher._local_runner import LocalSearchRunner
from determined.searcher._method import ExitedReason, SearcherState, SearchMethod
from determined.searcher._operations import Close, Create, Operation, Progress, Shutdown, ValidateAfter
from determined.searcher._remote_runner import RemoteSearchRunner
from determined.searcher._runner import SearchRunner

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
