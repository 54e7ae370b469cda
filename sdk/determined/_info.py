"""Information about the cluster, allocation and trial of this process (core API spec, section 2)."""

import json
import os
import pathlib
from typing import Any, TypeVar

_DEFAULT_DIRECTORY = "/run/determined/info"


def info_directory() -> pathlib.Path:
    """Return the directory where the worker writes this allocation's description. It may not exist."""
    return pathlib.Path(os.environ.get("DET_INFO_DIR") or _DEFAULT_DIRECTORY)


class TrialInfo:
    """The trial that this task runs.

    Attributes:
        trial_id: Id of the trial.
        experiment_id: Id of the experiment that the trial belongs to.
        trial_seed: Random seed of the trial.
        hparams: Hyperparameters chosen for the trial, nested as in the configuration.

    Example:
        ```python
        info = det.get_cluster_info()
        if info is not None:
            trial = info.trial
            optimizer = torch.optim.SGD(model.parameters(), lr=trial.hparams["lr"])
            print(f"trial {trial.trial_id} of experiment {trial.experiment_id}, seed {trial.trial_seed}")
        ```
    """

    def __init__(
        self,
        trial_id: int,
        experiment_id: int,
        trial_seed: int,
        hparams: dict[str, Any],
        config: dict[str, Any],
        steps_completed: int,
        trial_run_id: int,
        debug: bool,
        inter_node_network_interface: str | None = None,
    ) -> None:
        self.trial_id = trial_id
        self.experiment_id = experiment_id
        self.trial_seed = trial_seed
        self.hparams = hparams
        """Sampled values, with the nesting of the configuration. Integers stay `int`."""
        self._config = config
        """The complete merged experiment configuration."""
        self._steps_completed = steps_completed
        self._trial_run_id = trial_run_id
        self._debug = debug
        self._inter_node_network_interface = inter_node_network_interface


class RendezvousInfo:
    """All nodes of the allocation, ordered by rank."""

    def __init__(
        self, container_addrs: list[str], container_rank: int, container_slot_counts: list[int]
    ) -> None:
        self.container_addrs = container_addrs
        self.container_rank = container_rank
        self.container_slot_counts = container_slot_counts


class ResourcesInfo:
    """The devices of this node that are assigned to the allocation."""

    def __init__(self, gpu_uuids: list[str]) -> None:
        self.gpu_uuids = gpu_uuids


class ClusterInfo:
    """Describes the cluster and the task that this process belongs to. Returned by `get_cluster_info()`.

    Attributes:
        master_url: Address of the cluster, including the scheme.
        cluster_id: Id of the cluster.
        agent_id: Id of the worker that this process runs on.
        slot_ids: Slots on this node; empty for a task without slots.
        task_id: Id of the task.
        allocation_id: Id of this run of the task.
        task_type: `TRIAL`, `NOTEBOOK`, `SHELL`, `COMMAND`, `TENSORBOARD` or `CHECKPOINT_GC`.

    Example:
        ```python
        info = det.get_cluster_info()
        if info is None:
            print("not on a cluster")
        else:
            print(f"{info.task_type} {info.task_id} on slots {info.slot_ids} of {info.agent_id}")
        ```
    """

    def __init__(
        self,
        master_url: str,
        cluster_id: str,
        agent_id: str,
        slot_ids: list[int],
        task_id: str,
        allocation_id: str,
        session_token: str,
        task_type: str,
        master_cert_name: str | None = None,
        master_cert_file: str | None = None,
        latest_checkpoint: str | None = None,
        trial_info: TrialInfo | None = None,
        rendezvous_info: RendezvousInfo | None = None,
        resources_info: ResourcesInfo | None = None,
    ) -> None:
        self.master_url = master_url
        """Includes the scheme; has no trailing slash."""
        self.cluster_id = cluster_id
        self.agent_id = agent_id
        self.slot_ids = slot_ids
        """Slots on this node; empty for a zero-slot task."""
        self.task_id = task_id
        self.allocation_id = allocation_id
        self.session_token = session_token
        self.task_type = task_type
        """`TRIAL`, `NOTEBOOK`, `SHELL`, `COMMAND`, `TENSORBOARD` or `CHECKPOINT_GC`."""
        self.master_cert_name = master_cert_name
        self.master_cert_file = master_cert_file
        self._latest_checkpoint = latest_checkpoint
        self._trial_info = trial_info
        self._rendezvous_info = rendezvous_info
        self._resources_info = resources_info

    @property
    def latest_checkpoint(self) -> str | None:
        """Storage id of the trial's latest checkpoint, or its warm start; None if this is not a trial.

        Example:
            ```python
            if info.latest_checkpoint is not None:
                with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                    model.load_state_dict(torch.load(path / "model.pt"))
            ```
        """
        return self._latest_checkpoint if self.task_type == "TRIAL" else None

    @property
    def user_data(self) -> dict[str, Any]:
        """The `data` field of the experiment configuration; `{}` if it is absent or this is not a trial.

        Example:
            ```python
            folder = det.get_cluster_info().user_data["folder"]    # `data: {folder: /datasets/digits}`
            ```
        """
        if self.task_type != "TRIAL":
            return {}
        return self.trial._config.get("data") or {}

    @property
    def trial(self) -> TrialInfo:
        """The trial. Raises RuntimeError if the task is not a trial.

        Example:
            ```python
            trial = det.get_cluster_info().trial
            torch.manual_seed(trial.trial_seed)
            print(trial.experiment_id, trial.trial_id, trial.hparams["lr"])
            ```
        """
        if self.task_type != "TRIAL":
            raise RuntimeError(f"ClusterInfo.trial exists in TRIAL tasks only, not in {self.task_type} tasks")
        if self._trial_info is None:
            raise AssertionError("trial.json is missing although this is a TRIAL task")
        return self._trial_info

    @property
    def container_addrs(self) -> list[str]:
        """Address of every node of the allocation, ordered by rank.

        Example:
            ```python
            chief = det.get_cluster_info().container_addrs[0]
            ```
        """
        return ["127.0.0.1"] if self.task_type != "TRIAL" else self._rendezvous.container_addrs

    @property
    def container_slot_counts(self) -> list[int]:
        """Number of slots on every node of the allocation, ordered by rank.

        Example:
            ```python
            ranks = sum(det.get_cluster_info().container_slot_counts)    # one process for each slot
            ```
        """
        return [len(self.slot_ids)] if self.task_type != "TRIAL" else self._rendezvous.container_slot_counts

    @property
    def container_rank(self) -> int:
        """Index of this node in the allocation.

        Example:
            ```python
            info = det.get_cluster_info()
            first_rank = sum(info.container_slot_counts[: info.container_rank])
            ```
        """
        return 0 if self.task_type != "TRIAL" else self._rendezvous.container_rank

    @property
    def gpu_uuids(self) -> list[str]:
        """UUIDs of the GPUs on this node that belong to the allocation.

        Example:
            ```python
            print(f"this node trains on {len(det.get_cluster_info().gpu_uuids)} GPUs")
            ```
        """
        if self._resources_info is None:
            raise AssertionError("resources.json is missing")
        return self._resources_info.gpu_uuids

    @property
    def _rendezvous(self) -> RendezvousInfo:
        if self._rendezvous_info is None:
            raise AssertionError("rendezvous.json is missing although this is a TRIAL task")
        return self._rendezvous_info


_T = TypeVar("_T", ClusterInfo, TrialInfo, RendezvousInfo, ResourcesInfo)


def _load(kind: type[_T], path: pathlib.Path, **more: Any) -> _T:
    try:
        return kind(**json.loads(path.read_bytes()), **more)
    except (TypeError, ValueError) as e:
        raise RuntimeError(f"{path} does not describe a {kind.__name__}: {e}") from e


def _load_if_present(kind: type[_T], path: pathlib.Path) -> _T | None:
    return _load(kind, path) if path.exists() else None


def load_cluster_info(directory: pathlib.Path) -> ClusterInfo | None:
    """Read the description of an allocation. Returns None if `directory` has no cluster.json.

    Raises RuntimeError, naming the file, if a file cannot be parsed.
    """
    if not (directory / "cluster.json").exists():
        return None
    return _load(
        ClusterInfo,
        directory / "cluster.json",
        trial_info=_load_if_present(TrialInfo, directory / "trial.json"),
        rendezvous_info=_load_if_present(RendezvousInfo, directory / "rendezvous.json"),
        resources_info=_load_if_present(ResourcesInfo, directory / "resources.json"),
    )


_UNREAD: Any = object()
_info: ClusterInfo | None = _UNREAD


def get_cluster_info() -> ClusterInfo | None:
    """Return the cluster's description of this task.

    Returns:
        The description, or None when not running on a cluster. It is read once per process.

    Raises:
        RuntimeError: If a file of the description cannot be parsed. The message names the file.

    Example:
        ```python
        info = det.get_cluster_info()
        if info is not None:
            print(info.trial.trial_id, info.trial.hparams, info.latest_checkpoint)
        ```
    """
    global _info
    if _info is _UNREAD:
        _info = load_cluster_info(info_directory())
    return _info
