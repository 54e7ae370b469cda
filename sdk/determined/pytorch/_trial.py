"""What a model must say of itself to be trained (Trainer spec, section 2)."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from determined._training.reducer import Reducer
from determined._trial import Trial
from determined.errors import InvalidExperimentException
from determined.pytorch._callback import PyTorchCallback
from determined.pytorch._data import TorchData, data_length

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


class PyTorchTrial(Trial, abc.ABC):
    """Subclass it, wrap models and optimizers in `__init__`, and define the hooks below.

    Exactly one of `evaluate_batch` and `evaluate_full_dataset` must be defined.
    """

    @abc.abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """The legacy entry passes the context alone."""

    @abc.abstractmethod
    def train_batch(self, batch: TorchData, epoch_idx: int, batch_idx: int) -> torch.Tensor | dict[str, Any]:
        """Train on one batch, which lies on the device; a bare tensor counts as `{"loss": tensor}`.

        Names of metrics must be the same for all batches of a window.
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:
        """The training data, as a `determined.pytorch.DataLoader`; once per `fit`, on every rank."""

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:
        """The validation data; once per `fit`, on every rank."""

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Callbacks by name."""
        return {}

    def evaluate_batch(self, batch: TorchData, batch_idx: int) -> dict[str, Any]:
        """Metrics of one validation batch; `batch_idx` may be left out of the signature."""
        raise NotImplementedError

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        """What becomes of the values of `evaluate_batch`: one for all metrics, or one for each."""
        return Reducer.AVG

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader[Any]) -> dict[str, Any]:
        """Metrics of the whole validation data; chief only, nothing is moved to the device."""
        raise NotImplementedError

    def get_batch_length(self, batch: Any) -> int:
        """Number of records in a batch, for throughput."""
        return data_length(batch)


def check(trial: object) -> PyTorchTrial:
    """A trial that can be trained; TypeError, InvalidExperimentException otherwise."""
    if not isinstance(trial, PyTorchTrial):
        raise TypeError(f"the trial must be a PyTorchTrial, not {type(trial).__name__}")
    by_batch, at_once = evaluates_batches(trial), _overridden(trial, "evaluate_full_dataset")
    if by_batch == at_once:
        which = "both" if by_batch else "none"
        raise InvalidExperimentException(
            f"{type(trial).__name__} defines {which} of evaluate_batch and evaluate_full_dataset: define one"
        )
    return trial


def evaluates_batches(trial: PyTorchTrial) -> bool:
    """Whether validation goes batch by batch."""
    return _overridden(trial, "evaluate_batch")


def evaluation_of(trial: PyTorchTrial) -> Callable[[Any, int], Any]:
    """`evaluate_batch`, called with the index of the batch if it has a place for it."""
    evaluate: Any = trial.evaluate_batch
    parameters = list(inspect.signature(evaluate).parameters.values())
    if any(p.name == "batch_idx" for p in parameters):
        return lambda batch, index: evaluate(batch, batch_idx=index)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) > 1:
        return lambda batch, index: evaluate(batch, index)
    return lambda batch, _: evaluate(batch)


def _overridden(trial: PyTorchTrial, method: str) -> bool:
    return getattr(type(trial), method) is not getattr(PyTorchTrial, method)
