"""Results of each rank's part in a joint task, so that no rank waits for one that failed."""

import pickle
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from determined.core._collectives import Collectives, Group

_T = TypeVar("_T")


class Outcome(Generic[_T]):
    """The value or exception of an action. Can be sent to another rank."""

    def __init__(self, action: Callable[[], _T]) -> None:
        self.error: Exception | None = None
        try:
            self._value = action()
        except Exception as e:
            self.error = e

    def get(self) -> _T:
        """Return the action's value, or raise its exception."""
        if self.error is not None:
            raise self.error
        return self._value

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "error": _portable(self.error)}


def _portable(error: Exception | None) -> Exception | None:
    """Return the error, or a RuntimeError with the same text if it cannot be pickled."""
    try:
        # Both ways: some exceptions can be pickled but not be made again.
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(error_text(error))


def error_text(error: BaseException | None) -> str:
    """Return the type and text of an error."""
    return f"{type(error).__name__}: {error}"


def values_of_all(group: Group | Collectives, mine: Outcome[_T]) -> list[_T]:
    """Return the action's values by rank. All ranks call this, and all raise if one failed.

    A failed rank raises its own error; the others raise a RuntimeError that names ranks and errors.
    """
    everybody: list[Outcome[_T]] = group.allgather(mine)
    # A rank that failed raises its own error, with its traceback; the others say which ranks failed.
    mine.get()
    failed = [
        f"rank {rank}: {error_text(outcome.error)}" for rank, outcome in enumerate(everybody) if outcome.error
    ]
    if failed:
        raise RuntimeError("nothing is stored because of " + "; ".join(failed))
    return [outcome.get() for outcome in everybody]
