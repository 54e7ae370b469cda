"""Batch processing: one pass over a data set on all slots, for example inference (Trainer spec, 17)."""

from __future__ import annotations

import abc
import contextlib
import json
import pathlib
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from determined import _arguments, core
from determined._info import ClusterInfo, get_cluster_info
from determined.pytorch._data import to_device
from determined.pytorch._init import _device, _group
from determined.pytorch._mixed_precision import Module
from determined.pytorch._reducing import _PyTorchReducerContext
from determined.pytorch.samplers import adapt_batch_sampler, share_length

FILE = "batch_completed.json"
_OURS = ("shuffle", "sampler", "batch_sampler")


def get_default_device(core_context: core.Context) -> torch.device:
    """Return this rank's device: its GPU, or else the CPU.

    Args:
        core_context: The Core API of this process.

    Returns:
        A torch device.

    Example:
        ```python
        model.to(get_default_device(core_context))
        ```
    """
    return _device(core_context.distributed)


class TorchBatchProcessorContext(_PyTorchReducerContext):
    """The context of a `TorchBatchProcessor`.

    Metrics of validation reducers are reported after all batches are processed.

    Attributes:
        distributed: The ranks, a `determined.core.DistributedContext`.
        device: The device of this rank.

    Example:
        ```python
        def __init__(self, context):
            self.context = context
            self.model = context.prepare_model_for_inference(load_model())

        def process_batch(self, batch, batch_idx):
            with torch.no_grad(), self.context.upload_path() as path:
                scores = self.model(self.context.to_device(batch))
                torch.save(scores, path / f"{self.context.distributed.rank}-{batch_idx}.pt")
        ```
    """

    def __init__(self, core_context: core.Context, storage_path: str) -> None:
        """Constructed by `torch_batch_process()`.

        Args:
            core_context: Reports metrics and stores files.
            storage_path: Storage id for the files of `upload_path()`.
        """
        super().__init__()
        self._core = core_context
        self._storage_path = storage_path
        self._warned_types: set[type] = set()
        self.distributed: core.DistributedContext = core_context.distributed
        self.device: torch.device = get_default_device(core_context)

    def to_device(self, data: Any, warned_types: set[type] | None = None) -> Any:
        """Return a batch moved to this rank's device.

        Args:
            data: A tensor, a NumPy array, or lists, tuples and dicts of them. Other values are returned
                unchanged, with one warning per type.
            warned_types: Types already warned about, instead of those of the context.

        Example:
            ```python
            scores = self.model(self.context.to_device(batch))
            ```
        """
        return to_device(data, self.device, self._warned_types if warned_types is None else warned_types)

    def prepare_model_for_inference(self, model: Module) -> Module:
        """Put a model into evaluation mode and move it to the device.

        Args:
            model: The model.

        Returns:
            The same model.

        Example:
            ```python
            self.model = context.prepare_model_for_inference(network)
            ```
        """
        model.eval()
        return model.to(self.device)

    def get_tensorboard_path(self) -> pathlib.Path:
        """Return the directory for TensorBoard event files of this process.

        Example:
            ```python
            writer = SummaryWriter(log_dir=str(context.get_tensorboard_path()))
            ```
        """
        return self._core.train.get_tensorboard_path()

    @contextlib.contextmanager
    def upload_path(self) -> Iterator[pathlib.Path]:
        """Yield a directory whose files are uploaded to checkpoint storage when the `with` block ends.

        Any rank may call it any number of times. All files are stored under one storage id, which the trial's
        checkpoints record as `default_output_uuid`. Therefore give each file a unique name.

        Returns:
            A context manager that yields the directory.

        Example:
            ```python
            with context.upload_path() as path:
                torch.save(predictions, path / f"{batch_idx}-{context.distributed.rank}.pt")
            ```
        """
        with tempfile.TemporaryDirectory() as scratch:
            yield pathlib.Path(scratch)
            self._core.checkpoint._storage.upload(scratch, self._storage_path, checksums=False)


class TorchBatchProcessor(abc.ABC):
    """Processes each batch of a data set. Subclass it and pass the class to `torch_batch_process()`.

    Example:
        ```python
        class CountLabels(TorchBatchProcessor):
            def __init__(self, context):
                self.counts = collections.Counter()

            def process_batch(self, batch, batch_idx):
                images, labels = batch
                self.counts.update(labels.tolist())

            def on_finish(self):
                print(self.counts)

        torch_batch_process(CountLabels, dataset, batch_size=64)
        ```
    """

    @abc.abstractmethod
    def __init__(self, context: TorchBatchProcessorContext) -> None:
        """Load what you need, such as the model.

        Args:
            context: Provides the device and stores results.
        """

    @abc.abstractmethod
    def process_batch(self, batch: Any, batch_idx: int) -> None:
        """Process one batch.

        Args:
            batch: A batch from the data loader, not moved to the device.
            batch_idx: Index of the batch on this rank, from 0.

        Example:
            ```python
            def process_batch(self, batch, batch_idx):
                scores = self.model(self.context.to_device(batch))
                numpy.save(self.folder / f"{batch_idx}.npy", scores.argmax(1).cpu().numpy())
            ```
        """

    def on_checkpoint_start(self) -> None:  # noqa: B027
        """Called before a checkpoint. Store results still in memory: processed batches are not repeated.

        Example:
            ```python
            def on_checkpoint_start(self):
                self.results.flush()
            ```
        """

    def on_finish(self) -> None:  # noqa: B027
        """Called after all batches of this rank are processed.

        Example:
            ```python
            def on_finish(self):
                self.results.close()
            ```
        """


def torch_batch_process(
    batch_processor_cls: type[TorchBatchProcessor],
    dataset: Any,
    batch_size: int | None = None,
    max_batches: int | None = None,
    checkpoint_interval: int = 5,
    dataloader_kwargs: dict[str, Any] | None = None,
    distributed_context: core.DistributedContext | None = None,
) -> None:
    """Process a data set once on all slots of a trial. After a pause it continues at the next batch.

    Args:
        batch_processor_cls: Processes each batch. Every rank creates one instance.
        dataset: A map-style data set with a length.
        batch_size: Number of records in a batch; 1 unless given here or in `dataloader_kwargs`.
        max_batches: Maximum number of batches on each rank, or None for all.
        checkpoint_interval: Number of batches on each rank between small checkpoints that record progress.
        dataloader_kwargs: Arguments for torch's `DataLoader`, except `shuffle`, `sampler` and
            `batch_sampler`.
        distributed_context: The ranks, if the script has created them itself.

    Raises:
        RuntimeError: If the script does not run in a trial on a cluster.
        TypeError: If the data set has no length, or another argument has the wrong type.
        ValueError: If `dataloader_kwargs` set the order, `batch_size` is given twice, or
            `checkpoint_interval` is below 1.

    Example:
        ```python
        class Predict(TorchBatchProcessor):
            def __init__(self, context):
                self.context = context
                self.model = context.prepare_model_for_inference(load_model())

            def process_batch(self, batch, batch_idx):
                with torch.no_grad(), self.context.upload_path() as path:
                    torch.save(self.model(self.context.to_device(batch)), path / f"{batch_idx}.pt")

        torch_batch_process(Predict, dataset, batch_size=64)
        ```
    """
    _check(batch_processor_cls, batch_size, max_batches, dataloader_kwargs)
    info = get_cluster_info()
    if info is None or info.task_type != "TRIAL":
        raise RuntimeError("torch_batch_process() runs in a trial on a cluster only: submit the script")
    options = _checked(dataset, batch_size, checkpoint_interval, dict(dataloader_kwargs or {}))
    ranks = contextlib.nullcontext(distributed_context) if distributed_context else _group(info, None)
    with ranks as group, core.init(distributed=group) as core_context:
        start, output = _resumed(core_context, info)
        context = TorchBatchProcessorContext(core_context, output)
        processor = batch_processor_cls(context)
        batches = _Batches(dataset, options, max_batches, group, start)
        run = _Run(core_context, context, processor, output, checkpoint_interval, info.trial.trial_id)
        for op in core_context.searcher.operations():
            if not run.over(batches, op):
                return
            metrics = run.finish(batches)
            if group.rank == 0:
                name = (info.trial._config.get("searcher") or {}).get("metric")
                op.report_completed(metrics.get(str(name), batches.most))


def _check(batch_processor_cls: Any, batch_size: Any, max_batches: Any, dataloader_kwargs: Any) -> None:
    if not isinstance(batch_processor_cls, type) or not hasattr(batch_processor_cls, "process_batch"):
        expected = "a class derived from TorchBatchProcessor"
        raise TypeError(_arguments.wrong("batch_processor_cls", expected, batch_processor_cls))
    for name, number in (("batch_size", batch_size), ("max_batches", max_batches)):
        if number is not None:
            _arguments.integer(name, number, at_least=1)
    if dataloader_kwargs is not None:
        _arguments.mapping(
            "dataloader_kwargs", dataloader_kwargs, "a dict of arguments of torch's DataLoader"
        )


def _checked(dataset: Any, batch_size: int | None, interval: int, options: dict[str, Any]) -> dict[str, Any]:
    if not hasattr(dataset, "__len__"):
        raise TypeError(f"the data set must have a length, a {type(dataset).__name__} has none")
    taken = [name for name in _OURS if name in options]
    if taken:
        raise ValueError(f"dataloader_kwargs cannot have {', '.join(taken)}: the ranks share the batches")
    if batch_size is not None and "batch_size" in options:
        raise ValueError("give batch_size once, not in dataloader_kwargs as well")
    if interval < 1:
        raise ValueError(f"checkpoint_interval must be at least 1, not {interval}")
    if batch_size is not None:
        options["batch_size"] = batch_size
    return options


def _resumed(core_context: core.Context, info: ClusterInfo) -> tuple[int, str]:
    """Return the number of batches each rank has processed, and the storage id of their results."""
    state: dict[str, Any] = {}
    if info.latest_checkpoint is not None:
        with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
            file = path / FILE
            state = json.loads(file.read_text()) if file.exists() else {}
    # Ignore another trial's progress: this trial must process all batches itself.
    if state.get("trial_id", info.trial.trial_id) != info.trial.trial_id:
        state = {}
    output: str = core_context.distributed.broadcast(state.get("default_output_uuid") or str(uuid.uuid4()))
    return int(state.get("steps_completed", 0)), output


class _Batches:
    """The batches of this rank."""

    def __init__(
        self,
        dataset: Any,
        options: dict[str, Any],
        most: int | None,
        group: core.DistributedContext,
        start: int,
    ) -> None:
        size, drop_last = options.pop("batch_size", None) or 1, options.pop("drop_last", False)
        # In order and without shuffling: a run that resumes must skip the batches that are done.
        order = BatchSampler(SequentialSampler(dataset), size, drop_last)
        mine = share_length(len(order), group.size, group.rank)
        self.most = share_length(len(order), group.size, 0)
        """Number of batches on the rank that has the most."""
        if most is not None:
            mine, self.most = min(mine, most), min(self.most, most)
        self.start, self.mine = start, mine
        sampler = adapt_batch_sampler(order, skip=start, num_replicas=group.size, rank=group.rank)
        self._loader: DataLoader[Any] = DataLoader(dataset, batch_sampler=sampler, **options)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        if self.start < self.mine:
            yield from zip(range(self.start, self.mine), self._loader, strict=False)


class _Run:
    """Processes all batches of a rank, synchronizing with the other ranks at intervals."""

    def __init__(
        self,
        core_context: core.Context,
        context: TorchBatchProcessorContext,
        processor: TorchBatchProcessor,
        output: str,
        interval: int,
        trial_id: int,
    ) -> None:
        self._core, self._context, self._processor = core_context, context, processor
        self._output, self._interval, self._trial_id = output, interval, trial_id
        self._done = -1

    def over(self, batches: _Batches, op: core.SearcherOperation) -> bool:
        """Process all remaining batches. Returns False if the trial is preempted first."""
        if self._done >= batches.most:
            return True
        pending = iter(batches)
        self._done = batches.start
        while self._done < batches.most:
            until = min(self._done + self._interval, batches.most)
            for _ in range(min(until, batches.mine) - min(self._done, batches.mine)):
                index, batch = next(pending)
                self._processor.process_batch(batch, index)
            self._done = until
            self._meet(lambda: op.report_progress(op.length * self._done / batches.most))
            if self._core.preempt.should_preempt():
                return False
        return True

    def _meet(self, report_progress: Callable[[], None]) -> None:
        """Store the progress. Ranks that have run out of batches must still call this."""
        self._processor.on_checkpoint_start()
        # All ranks have stored their results before the checkpoint says that these batches are done.
        self._core.distributed.gather(None)
        if self._core.distributed.rank != 0:
            return
        steps = {"steps_completed": self._done, "default_output_uuid": self._output}
        with self._core.checkpoint.store_path(dict(steps)) as (path, _):
            (path / FILE).write_text(json.dumps({**steps, "trial_id": self._trial_id}))
        report_progress()

    def finish(self, batches: _Batches) -> dict[str, Any]:
        """Return and report the metrics of all reducers."""
        self._processor.on_finish()
        metrics = self._context.reduce_metrics(for_training=False)
        if metrics and self._core.distributed.rank == 0:
            self._core.train.report_validation_metrics(batches.most, metrics)
        return metrics
