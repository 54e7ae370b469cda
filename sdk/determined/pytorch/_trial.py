"""The class that users subclass to have a model trained (Trainer spec, section 2)."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from determined._training.reducer import Reducer
from determined._trial import Trial
from determined.errors import InvalidExperimentException
from determined.pytorch._callback import PyTorchCallback
from determined.pytorch._data import data_length

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


_Result = TypeVar("_Result")


def _with_any_parameters(method: Callable[..., _Result]) -> Callable[..., _Result]:
    """For type checkers: a subclass may define the method with fewer parameters."""
    return method


class PyTorchTrial(Trial, abc.ABC):
    """A model, its data and how to train on a batch. Subclass it; `Trainer` does the rest.

    Wrap models, optimizers and schedulers in `__init__`. Define exactly one of `evaluate_batch` and
    `evaluate_full_dataset`.

    Example:
        ```python
        class MnistTrial(pytorch.PyTorchTrial):
            def __init__(self, context):
                self.context = context
                self.model = context.wrap_model(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))
                optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr"))
                self.optimizer = context.wrap_optimizer(optimizer)

            def build_training_data_loader(self):
                return pytorch.DataLoader(train_set, batch_size=self.context.get_per_slot_batch_size())

            def build_validation_data_loader(self):
                return pytorch.DataLoader(test_set, batch_size=self.context.get_per_slot_batch_size())

            def train_batch(self, batch, epoch_idx, batch_idx):
                images, labels = batch                       # (records, 1, 28, 28) and (records,)
                loss = nn.functional.cross_entropy(self.model(images), labels)
                self.context.backward(loss)
                self.context.step_optimizer(self.optimizer)
                return {"loss": loss}

            def evaluate_batch(self, batch, batch_idx):
                images, labels = batch
                return {"accuracy": (self.model(images).argmax(dim=1) == labels).float().mean()}
        ```
    """

    @abc.abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """Keep the context, and wrap models, optimizers, schedulers and reducers with it.

        Args:
            context: Gives hyperparameters, wraps, and steps optimizers. A class that is named as the
                entrypoint is made with the context alone.
        """

    @abc.abstractmethod
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor | dict[str, Any]:
        """Train on one batch: forward, `context.backward()`, `context.step_optimizer()`.

        Args:
            batch: What the data loader gave, moved to the device of this rank: tensors whose first dimension
                is usually that of records, `(records on this slot, ...)`.
            epoch_idx: Index of the epoch, counted from 0 over the life of the trial.
            batch_idx: Index of the batch, counted from 0 over the life of the trial, on one slot.

        Returns:
            Metrics by name, the same names for all batches of a window; a bare tensor counts as `{"loss":
            tensor}`. Tensors are detached; a mean over batches and ranks is reported.

        Example:
            ```python
            def train_batch(self, batch, epoch_idx, batch_idx):
                images, labels = batch
                loss = torch.nn.functional.cross_entropy(self.model(images), labels)
                self.context.backward(loss)
                self.context.step_optimizer(self.optimizer)
                return {"loss": loss}
            ```
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:
        """Return the training data as a `determined.pytorch.DataLoader`.

        Called once per `fit()`, on every rank. The loader is repeated, shared out among the ranks and
        continued at the right batch after a pause, so it describes the whole data set with the batch size of
        one slot. A loader of another kind needs
        `context.experimental.disable_dataset_reproducibility_checks()`.

        Example:
            ```python
            def build_training_data_loader(self):
                size = self.context.get_per_slot_batch_size()
                return pytorch.DataLoader(self.training_data, batch_size=size, shuffle=True)
            ```
        """

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:
        """Return the validation data as a `determined.pytorch.DataLoader`.

        Called once per `fit()`, on every rank. Each rank validates its share; with `evaluate_full_dataset`
        the chief gets everything.
        """

    def build_callbacks(self) -> Mapping[str, PyTorchCallback]:
        """Return the callbacks of this trial by name. The name is that of their state in checkpoints.

        Example:
            ```python
            def build_callbacks(self):
                return {"stop_early": StopEarly(patience=3)}
            ```
        """
        return {}

    @_with_any_parameters
    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Validate on one batch. Models are in evaluation mode and gradients are off.

        Args:
            batch: What the data loader gave, moved to the device of this rank.
            batch_idx: Index of the batch in this validation on this rank. May be left out of the signature.

        Returns:
            Metrics by name, the same names for all batches. `evaluation_reducer()` makes one value of all.

        Example:
            ```python
            def evaluate_batch(self, batch):
                images, labels = batch
                right = self.model(images).argmax(1) == labels
                return {"accuracy": right.float().mean()}
            ```
        """
        raise NotImplementedError

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        """Choose how the values that `evaluate_batch` returns for all batches of all ranks become one.

        Returns:
            One `Reducer` for all metrics, or a dict with a `Reducer` for each of them. The default is
            `Reducer.AVG`; each rank's mean is weighted by the number of its batches.
        """
        return Reducer.AVG

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader[Any]) -> dict[str, Any]:
        """Validate on the whole data set at once. Only the chief is called.

        Args:
            data_loader: A `torch.utils.data.DataLoader` over all of the validation data. Its batches are
                where the loader puts them: move them with `context.to_device()`.

        Returns:
            Metrics by name.
        """
        raise NotImplementedError

    def get_batch_length(self, batch: Any) -> int:
        """Return the number of records in a batch, from which throughput is computed.

        Args:
            batch: What the data loader gave. Override the method for batches that are neither tensors nor
                lists, tuples or dicts of them.
        """
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
