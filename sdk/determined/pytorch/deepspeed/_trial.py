"""The class that users subclass to train a model with DeepSpeed."""

from __future__ import annotations

import abc
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from determined._trial import Trial
from determined.pytorch._callback import PyTorchCallback

if TYPE_CHECKING:
    from determined.pytorch.deepspeed._context import DeepSpeedTrialContext


class DeepSpeedTrial(Trial, abc.ABC):
    """Subclass it, wrap DeepSpeed engines in `__init__`, and define the methods below.

    The engine handles backward passes, steps, schedules and precision according to its own configuration.

    Example:
        ```python
        class DigitsTrial(DeepSpeedTrial):
            def __init__(self, context):
                self.context = context
                engine, *_ = deepspeed.initialize(model=net, config="ds.json")
                self.engine = context.wrap_model_engine(engine)

            def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
                images, labels = self.context.to_device(next(dataloader_iter))
                loss = torch.nn.functional.cross_entropy(self.engine(images), labels)
                self.engine.backward(loss)
                self.engine.step()
                return {"loss": loss}

            def evaluate_batch(self, dataloader_iter, batch_idx):
                images, labels = self.context.to_device(next(dataloader_iter))
                return {"accuracy": (self.engine(images).argmax(1) == labels).float().mean()}

            def build_training_data_loader(self):
                return pytorch.DataLoader(digits, self.context.train_micro_batch_size_per_gpu)

            def build_validation_data_loader(self):
                return pytorch.DataLoader(test_digits, self.context.train_micro_batch_size_per_gpu)
        ```
    """

    @abc.abstractmethod
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        """Create the engines with `deepspeed.initialize()` and wrap them.

        Args:
            context: Provides hyperparameters and wraps engines.
        """

    @abc.abstractmethod
    def train_batch(
        self, dataloader_iter: Iterator[Any] | None, epoch_idx: int, batch_idx: int
    ) -> dict[str, Any]:
        """Train on one micro batch.

        With a pipeline engine, or after `disable_auto_grad_accumulation()`, train on all micro batches of a
        batch.

        Args:
            dataloader_iter: Returns micro batches from `next`; None on ranks that do not load data.
            epoch_idx: Index of the epoch over the life of the trial.
            batch_idx: Index of the batch over the life of the trial; the same for all its micro batches.

        Returns:
            Metrics by name; the same names on each call.

        Example:
            ```python
            def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
                images, labels = self.context.to_device(next(dataloader_iter))
                loss = torch.nn.functional.cross_entropy(self.engine(images), labels)
                self.engine.backward(loss)
                self.engine.step()
                return {"loss": loss}
            ```
        """

    @abc.abstractmethod
    def evaluate_batch(self, dataloader_iter: Iterator[Any] | None, batch_idx: int) -> dict[str, Any]:
        """Validate on one micro batch, or with a pipeline engine on all micro batches of a batch.

        Args:
            dataloader_iter: Returns micro batches from `next`; None on ranks that do not load data.
            batch_idx: Index of the call in this validation, from 0.

        Returns:
            Metrics by name. They are averaged over calls and ranks.

        Example:
            ```python
            def evaluate_batch(self, dataloader_iter, batch_idx):
                images, labels = self.context.to_device(next(dataloader_iter))
                loss = torch.nn.functional.cross_entropy(self.engine(images), labels)
                return {"validation_loss": loss}
            ```
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:
        """Return a `determined.pytorch.DataLoader` of micro batches, or None.

        Called on the ranks that load data.

        Returns:
            The loader of the whole data set.

        Example:
            ```python
            def build_training_data_loader(self):
                batch_size = self.engine.train_micro_batch_size_per_gpu()
                return pytorch.DataLoader(self.digits, batch_size=batch_size)
            ```
        """

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:
        """Return a `determined.pytorch.DataLoader` of micro batches, or None.

        Called on the ranks that load data.

        Returns:
            The loader of the whole data set.

        Example:
            ```python
            def build_validation_data_loader(self):
                batch_size = self.context.train_micro_batch_size_per_gpu
                return pytorch.DataLoader(self.test_digits, batch_size=batch_size)
            ```
        """

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Return callbacks by name. `on_checkpoint_write_end` is called on every rank.

        Returns:
            Callbacks by name; by default none.

        Example:
            ```python
            def build_callbacks(self):
                return {"stop_early": StopEarly(patience=3)}
            ```
        """
        return {}

    def save(self, context: DeepSpeedTrialContext, path: pathlib.Path) -> None:
        """Write the engines to a checkpoint. Called on every rank. Override it to store more than engines.

        Args:
            context: The context of the trial.
            path: The directory, which all ranks of a node share.

        Example:
            ```python
            def save(self, context, path):
                super().save(context, path)
                if context.distributed.get_rank() == 0:
                    (path / "vocabulary.json").write_text(json.dumps(self.vocabulary))
            ```
        """
        for index, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=f"model{index}")

    def load(self, context: DeepSpeedTrialContext, load_path: pathlib.Path) -> None:
        """Restore the engines from a checkpoint. Called on every rank.

        Args:
            context: The context of the trial.
            load_path: The directory, which is read-only.

        Raises:
            AssertionError: If DeepSpeed found nothing to load.

        Example:
            ```python
            def load(self, context, load_path):
                super().load(context, load_path)
                self.vocabulary = json.loads((load_path / "vocabulary.json").read_text())
            ```
        """
        for index, engine in enumerate(context.models):
            loaded, _ = engine.load_checkpoint(str(load_path), tag=f"model{index}")
            if loaded is None:
                raise AssertionError(
                    f"DeepSpeed could not load engine {index} from {load_path}/model{index}: was the "
                    "checkpoint written with another number of ranks or another ZeRO stage?"
                )
