"""The Core API as module-level functions, on a cluster and off it (core API spec, section 15).

    from determined.experimental import core_v2

    core_v2.init(defaults=core_v2.DefaultConfig(name="mine"))
    core_v2.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
    core_v2.close()

In a task on a cluster, this is the task's Core API. Elsewhere the script becomes an unmanaged trial: the
cluster records its reports, its output and the location of its checkpoints, but neither starts nor stops it
(docs/unmanaged.md).
"""

from __future__ import annotations

import atexit
import dataclasses
import logging
import sys
from typing import TYPE_CHECKING, Any

from determined import _arguments, _info, core
from determined.core import DistributedContext, DummyDistributedContext, PreemptMode, TensorboardMode
from determined.core._checkpoint_background import BackgroundUpload
from determined.core._context import Storage
from determined.core._outcome import Outcome
from determined.core._searcher import configured_units
from determined.core._storage_choice import chosen_storage
from determined.errors import InvalidHP
from determined.experimental import _unmanaged_arguments
from determined.experimental._own_output import OwnOutput
from determined.experimental._unmanaged_trial import registered
from determined.storage import StorageManager
from determined.transport.outside import OutsideTransport, Place
from determined.transport.rest import Session

if TYPE_CHECKING:
    from determined.experimental._determined import Determined

logger = logging.getLogger("determined.core")
_BEFORE_INIT: Any = None
"""Value of the parts before `init()` and after `close()`. The declared types leave it out on purpose."""

info: _info.ClusterInfo | None = None
distributed: DistributedContext = _BEFORE_INIT
checkpoint: core.CheckpointContext = _BEFORE_INIT
preempt: core.PreemptContext = _BEFORE_INIT
train: core.TrainContext = _BEFORE_INIT
searcher: core.SearcherContext = _BEFORE_INIT
_context: core.Context | None = None
_failed = False


@dataclasses.dataclass
class DefaultConfig:
    """Describes the experiment of a script that runs off cluster. It has no effect on a cluster.

    Attributes:
        name: Name of the experiment.
        hparams: Hyperparameters of the trial, by name.
        data: Custom values, shown with the experiment.
        description: A description.
        labels: Keywords for finding the experiment.
        checkpoint_storage: Where to store checkpoints: a path, a URL such as `s3://bucket/prefix`, or a
            mapping as in the configuration.
        searcher: The `searcher` section of the configuration. It names the metric and how far the script
            trains.

    Example:
        ```python
        core_v2.init(
            defaults=core_v2.DefaultConfig(
                name="digits on my laptop",
                hparams={"lr": 0.1},
                labels=["baseline"],
                checkpoint_storage="s3://bucket/digits",
                searcher={"metric": "accuracy", "smaller_is_better": False, "max_length": 100},
            )
        )
        ```
    """

    name: str | None = None
    hparams: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    description: str | None = None
    labels: list[str] | None = None
    checkpoint_storage: str | dict[str, Any] | None = None
    searcher: dict[str, Any] | None = None


@dataclasses.dataclass
class UnmanagedConfig:
    """Location of an experiment, and ids by which a later run finds the experiment and trial again.

    Attributes:
        workspace: Name of the workspace.
        project: Name of the project.
        external_experiment_id: An id of your choice. A later script with the same id adds to the same
            experiment.
        external_trial_id: An id of your choice. A later script with the same id continues the same trial,
            whose latest checkpoint is `core_v2.info.latest_checkpoint`.

    Example:
        ```python
        core_v2.init(
            defaults=core_v2.DefaultConfig(name="digits"),
            unmanaged=core_v2.UnmanagedConfig(
                workspace="Research",
                project="digits",
                external_experiment_id="digits-2024",
                external_trial_id="seed-1",
            ),
        )
        if core_v2.info.latest_checkpoint is not None:    # an earlier run with these ids has stored it
            with core_v2.checkpoint.restore_path(core_v2.info.latest_checkpoint) as path:
                model.load_state_dict(torch.load(path / "model.pt"))
        ```
    """

    workspace: str | None = None
    project: str | None = None
    external_experiment_id: str | None = None
    external_trial_id: str | None = None


def init(
    *,
    defaults: DefaultConfig | None = None,
    unmanaged: UnmanagedConfig | None = None,
    client: Determined | None = None,
    distributed: DistributedContext | None = None,
    checkpoint_storage: Storage = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> None:
    """Set this module's `train`, `checkpoint`, `searcher`, `preempt`, `distributed` and `info`.

    They stay set until `close()` or the end of the script. In a task on a cluster they are the task's.
    Elsewhere the script becomes an unmanaged trial: the cluster records its reports and output, but neither
    starts nor stops it.

    Args:
        defaults: Describes the experiment. Required off cluster.
        unmanaged: Location of the experiment, and ids for finding it again.
        client: The connection to use off cluster. Default: the one that `client.login()` would create.
        distributed: This process's place among the processes of the trial. Required with several ranks.
        checkpoint_storage: Where to store checkpoints, overriding `defaults` or the experiment.
        preempt_mode: Which ranks ask whether to stop, and how the others learn the answer.
        tensorboard_mode: Who uploads TensorBoard files. Has no effect off cluster.

    Raises:
        RuntimeError: If it was called before without a `close()` in between.
        NotImplementedError: If `defaults` is missing off cluster.
        TypeError: For an argument, or a field of `defaults` or `unmanaged`, of a wrong type.
        ValueError: For an unknown mode, or a storage that makes no sense.
        MasterNotFoundException: If no master answers at the address.

    Example:
        ```python
        from determined.experimental import core_v2

        core_v2.init(
            defaults=core_v2.DefaultConfig(name="on my laptop"),
            unmanaged=core_v2.UnmanagedConfig(workspace="Research", project="digits"),
        )
        for step in range(100):
            core_v2.train.report_training_metrics(steps_completed=step + 1, metrics={"loss": train_step()})
        core_v2.close()
        ```
    """
    global _context
    if _context is not None:
        raise RuntimeError("core_v2.init() was called before: call core_v2.close() first")
    _context = init_context(
        defaults=defaults,
        unmanaged=unmanaged,
        client=client,
        distributed=distributed,
        checkpoint_storage=checkpoint_storage,
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )
    _context.start()
    _show(_context)
    _watch_for_failure()
    atexit.register(_at_exit)


def close() -> None:
    """Wait until everything is stored, and report that the trial is complete.

    Does nothing without `init()`. If a script ends without calling it, the trial is closed automatically: as
    failed after an exception, otherwise as complete.

    Example:
        ```python
        core_v2.init(defaults=core_v2.DefaultConfig(name="on my laptop"))
        core_v2.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
        core_v2.close()
        ```
    """
    _close(None)


def url_reverse_webui_exp_view() -> str:
    """Return the address of the experiment's page in the web UI.

    Returns:
        A URL.

    Raises:
        RuntimeError: If `init()` was not called.

    Example:
        ```python
        core_v2.init(defaults=core_v2.DefaultConfig(name="digits"))
        print("see", core_v2.url_reverse_webui_exp_view())
        ```
    """
    if info is None:
        raise RuntimeError("call core_v2.init() first")
    return f"{info.master_url}/det/experiments/{info.trial.experiment_id}"


def init_context(
    *,
    defaults: DefaultConfig | None = None,
    unmanaged: UnmanagedConfig | None = None,
    client: Determined | None = None,
    distributed: DistributedContext | None = None,
    checkpoint_storage: Storage = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> core.Context:
    """Return the Core API as a context object, for use in a `with` statement.

    Args:
        defaults: Describes the experiment. Required off cluster.
        unmanaged: Location of the experiment, and ids for finding it again.
        client: The connection to use off cluster. Default: the one that `client.login()` would create.
        distributed: This process's place among the processes of the trial. Required with several ranks.
        checkpoint_storage: Where to store checkpoints, overriding `defaults` or the experiment.
        preempt_mode: Which ranks ask whether to stop, and how the others learn the answer.
        tensorboard_mode: Who uploads TensorBoard files. Has no effect off cluster.

    Returns:
        The context. The trial ends when its `with` block does.

    Raises:
        NotImplementedError: If `defaults` is missing off cluster.
        TypeError: For an argument, or a field of `defaults` or `unmanaged`, of a wrong type.
        ValueError: For an unknown mode, or a storage that makes no sense.
        MasterNotFoundException: If no master answers at the address.

    Example:
        ```python
        with core_v2.init_context(defaults=core_v2.DefaultConfig(name="on my laptop")) as core_context:
            core_context.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
        ```
    """
    _unmanaged_arguments.check(defaults, unmanaged, client, distributed)
    tensorboard_mode = _arguments.member("tensorboard_mode", tensorboard_mode, TensorboardMode)
    preempt_mode = _arguments.member("preempt_mode", preempt_mode, PreemptMode)
    if _info.get_cluster_info() is not None:
        return core.init(
            distributed=distributed,
            checkpoint_storage=checkpoint_storage,
            preempt_mode=preempt_mode,
            tensorboard_mode=tensorboard_mode,
        )
    if defaults is None:
        raise NotImplementedError("either give `defaults`, or run the script as an experiment of a cluster")
    storage = checkpoint_storage if checkpoint_storage is not None else defaults.checkpoint_storage
    dist = distributed or DummyDistributedContext()
    if dist.rank != 0:
        shared = dist.broadcast(None).get()
        context = core._dummy_init(distributed=dist, checkpoint_storage=storage, preempt_mode=preempt_mode)
        context.info = shared
        return context
    # All of it as an outcome, so that ranks waiting for the broadcast also learn of a failure.
    prepared = Outcome(lambda: (chosen_storage(storage), _signed_in(client)))
    outcome = Outcome(lambda: registered(prepared.get()[1], defaults, unmanaged or UnmanagedConfig()))
    info = dist.broadcast(outcome).get()
    manager, session = prepared.get()
    return _outside(info, session, dist, manager, preempt_mode)


def _signed_in(client: Determined | None) -> Session:
    from determined.experimental._determined import Determined

    return (client or Determined())._speaking


class _Outside(core.Context):
    """Reports at its end how the trial ended."""

    _output: OwnOutput | None = None

    def start(self) -> None:
        super().start()
        self._transport.start()
        if self.info is not None and isinstance(self._transport, OutsideTransport):
            self._output = OwnOutput(self._transport.ship, self.distributed.rank)

    def _close(self, error: BaseException | None) -> None:
        if self._output is not None:
            self._output.close()
        if isinstance(self._transport, OutsideTransport):
            canceled = isinstance(error, KeyboardInterrupt)
            failed = error is not None and not isinstance(error, InvalidHP)
            self._transport.ending = "CANCELED" if canceled else "ERROR" if failed else "COMPLETED"
        super()._close(error)


def _outside(
    info: _info.ClusterInfo,
    session: Session,
    dist: DistributedContext,
    manager: StorageManager,
    mode: PreemptMode,
) -> core.Context:
    trial, uploads = info.trial, BackgroundUpload()

    def connect() -> Session:
        made = Session(session.master, verify=session._verify, cert_name=session._cert_name)
        made.token = session.token
        return made

    place = Place(trial.experiment_id, trial.trial_id, info.task_id, trial._trial_run_id)
    transport = OutsideTransport(connect, place)
    return _Outside(
        checkpoint=core.CheckpointContext(dist, manager, transport, uploads),
        distributed=dist,
        preempt=core.PreemptContext(transport, dist, mode, uploads),
        train=core.TrainContext(
            transport, dist, trial_id=trial.trial_id, exp_id=trial.experiment_id, run_id=trial._trial_run_id
        ),
        searcher=core.SearcherContext(transport, dist, configured_units(trial._config), uploads),
        info=info,
        transport=transport,
    )


def _show(context: core.Context | None) -> None:
    for name in ("info", "distributed", "checkpoint", "preempt", "train", "searcher"):
        globals()[name] = getattr(context, name, None)


def _close(error: BaseException | None) -> None:
    global _context
    context, _context = _context, None
    if context is None:
        return
    atexit.unregister(_at_exit)
    try:
        context._close(error)
    finally:
        _show(None)


def _watch_for_failure() -> None:
    """Record an exception that ends the script, which `atexit` cannot see: the trial has then failed."""
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        global _failed
        _failed = True
        before(kind, error, trace)

    sys.excepthook = hook


def _at_exit() -> None:
    _close(RuntimeError("the script ended by an exception") if _failed else None)
