"""The class that users subclass to train a model (Trainer spec, section 2)."""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from determined import util
from determined._training.reducer import Reducer
from determined._trial import Trial
from determined.errors import InvalidExperimentException
from determined.pytorch._callback import PyTorchCallback
from determined.pytorch._data import data_length

if TYPE_CHECKING:
    from determined.pytorch._context import PyTorchTrialContext


_Result = TypeVar("_Result")


def _with_any_parameters(method: Callable[..., _Result]) -> Callable[..., _Result]:
    """Tell type checkers that a subclass may define the method with fewer parameters."""
    return method


class PyTorchTrial(Trial, abc.ABC):
    """Defines a model, its data, and training on one batch. Subclass it; `Trainer` does the rest.

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
        """Store the context, and use it to wrap models, optimizers, schedulers and reducers.

        Args:
            context: Provides hyperparameters and wrapping, and steps optimizers. A class named as the
                entrypoint is constructed with the context alone.
        """

    @abc.abstractmethod
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> torch.Tensor | dict[str, Any]:
        """Train on one batch: forward, `context.backward()`, `context.step_optimizer()`.

        Args:
            batch: A batch from the data loader, moved to this rank's device. The first dimension of its
                tensors is usually the records: `(records on this slot, ...)`.
            epoch_idx: Index of the epoch, counted from 0 over the life of the trial.
            batch_idx: Index of the batch on one slot, counted from 0 over the life of the trial.

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

        Returns:
            The loader of the whole data set.

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

        Called once per `fit()` on every rank. Each rank validates its share. With `evaluate_full_dataset`,
        the chief gets all the data.

        Returns:
            The loader of the whole data set.

        Example:
            ```python
            def build_validation_data_loader(self):
                size = self.context.get_per_slot_batch_size()
                return pytorch.DataLoader(self.validation_data, batch_size=size)
            ```
        """

    def build_callbacks(self) -> Mapping[str, PyTorchCallback]:
        """Return the callbacks of this trial by name. The name is that of their state in checkpoints.

        Returns:
            Callbacks by name; by default none.

        Example:
            ```python
            def build_callbacks(self):
                return {"stop_early": StopEarly(patience=3)}
            ```
        """
        return {}

    @_with_any_parameters
    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Validate on one batch. Models are in evaluation mode and gradients are disabled.

        Args:
            batch: A batch from the data loader, moved to this rank's device.
            batch_idx: Index of the batch in this validation on this rank. You may omit this parameter.

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
        """Choose how the values of `evaluate_batch` from all batches and ranks are combined.

        Returns:
            One `Reducer` for all metrics, or a dict with a `Reducer` for each metric. The default is
            `Reducer.AVG`, where each rank's mean is weighted by its number of batches.

        Example:
            ```python
            def evaluation_reducer(self):
                return {"loss": pytorch.Reducer.AVG, "errors": pytorch.Reducer.SUM}
            ```
        """
        return Reducer.AVG

    def evaluate_full_dataset(self, data_loader: torch.utils.data.DataLoader[Any]) -> dict[str, Any]:
        """Validate on the whole data set at once. Called only on the chief.

        Args:
            data_loader: A `torch.utils.data.DataLoader` over all validation data. Its batches are not moved
                to the device: use `context.to_device()`.

        Returns:
            Metrics by name.

        Example:
            ```python
            def evaluate_full_dataset(self, data_loader):
                right = total = 0
                for batch in data_loader:
                    images, labels = self.context.to_device(batch)
                    right += (self.model(images).argmax(1) == labels).sum().item()
                    total += len(labels)
                return {"accuracy": right / total}
            ```
        """
        raise NotImplementedError

    def get_batch_length(self, batch: Any) -> int:
        """Return the number of records in a batch. It is used to compute throughput.

        Override this for batches that are not tensors or lists, tuples or dicts of tensors.

        Args:
            batch: A batch from the data loader.

        Returns:
            A number of records.

        Example:
            ```python
            def get_batch_length(self, batch):
                return batch.num_graphs
            ```
        """
        return data_length(batch)


def check(trial: object) -> PyTorchTrial:
    """Return the trial if it can be trained. Raises TypeError or InvalidExperimentException otherwise."""
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
    """Whether the trial validates batch by batch."""
    return _overridden(trial, "evaluate_batch")


def evaluation_of(trial: PyTorchTrial) -> Callable[[Any, int], Any]:
    """Return `evaluate_batch`, passing the batch index only if the method accepts it."""
    evaluate: Any = trial.evaluate_batch
    parameters = list(inspect.signature(evaluate).parameters.values())
    if any(p.name == "batch_idx" for p in parameters):
        return lambda batch, index: evaluate(batch, batch_idx=index)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) > 1:
        return lambda batch, index: evaluate(batch, index)
    return lambda batch, _: evaluate(batch)


def _overridden(trial: PyTorchTrial, method: str) -> bool:
    return not util.is_same_method(getattr(trial, method), getattr(PyTorchTrial, method))
