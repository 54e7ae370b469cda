"""Names that Determined 0.25 had and this library lacks.

Importing one raises an error that suggests what to do.

docs/compatibility.md has more details. Tests check the table against the public names of 0.25.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

_CORE = "use determined.core in a script of your own"
_STORAGE = "import its class from determined.common.storage"
_INSIDE = "it was an inner part of the library and nothing replaces it"
_REST = "ask the REST API with determined.common.api.Session, whose answers are those of requests"
_EVENT_FILES = (
    "event files are stored by themselves; core_context.train.upload_tensorboard_files() stores them by hand"
)

TABLE: dict[str, str] = {
    "determined.common.api.NTSC_Kind": _REST,
    "determined.common.api.PageOpts": "client objects read all pages",
    "determined.common.api.TrialProfilerMetricsBatch": _INSIDE,
    "determined.common.api.WebSocket": "there are no web sockets for tasks; " + _REST,
    "determined.common.api.analytics": "nothing is sent to anybody",
    "determined.common.api.bindings": _REST,
    "determined.common.api.checkpoint": "use determined.experimental.client.get_checkpoint()",
    "determined.common.api.default_retry": "pass a number as max_retries, or set DET_RETRY_CONFIG",
    "determined.common.api.get_ntsc_details": _REST,
    "determined.common.api.get_trial_profiler_available_series": _REST,
    "determined.common.api.logs": "use determined.experimental.client.get_trial(id).logs()",
    "determined.common.api.metric": "use determined.experimental.client.stream_trials_training_metrics()",
    "determined.common.api.post_trial_profiler_metrics_batches": _INSIDE,
    "determined.common.api.pprint_logs": "print the lines of client.get_trial(id).logs()",
    "determined.common.api.profiler": _INSIDE,
    "determined.common.api.read_paginated": "client objects read all pages",
    "determined.common.api.task_is_ready": _REST,
    "determined.common.api.task_logs": "run det task logs, or " + _REST,
    "determined.common.api.trial_logs": "use determined.experimental.client.get_trial(id).logs()",
    "determined.common.api.wait_for_ntsc_state": _REST,
    "determined.common.api.ws": "there are no web sockets for tasks; " + _REST,
    "determined.common.check": "use assert, or raise what fits",
    "determined.common.context.read_v1_context": "use read_legacy_context(), whose files are dicts",
    "determined.common.context.v1File_from_local_dir": _INSIDE,
    "determined.common.context.v1File_from_local_file": _INSIDE,
    "determined.common.context.v1File_size": _INSIDE,
    "determined.common.context.v1File_to_dict": _INSIDE,
    "determined.common.declarative_argparse": "use argparse",
    "determined.common.experimental.oauth2_scim_client": "it belonged to the enterprise edition",
    "determined.common.experimental.resource_pool": _REST,
    "determined.common.experimental.workspace": _REST,
    "determined.common.requests": "use the package requests",
    "determined.common.storage.azure": _STORAGE,
    "determined.common.storage.base": _STORAGE,
    "determined.common.storage.cloud": _STORAGE,
    "determined.common.storage.gcs": _STORAGE,
    "determined.common.storage.s3": _STORAGE,
    "determined.common.storage.shared": _STORAGE,
    "determined.deploy": "run det deploy, for example by subprocess",
    "determined.estimator": "it had left Determined before 0.25; " + _CORE,
    "determined.experimental.client.Oauth2ScimClient": "it belonged to the enterprise edition",
    "determined.gpu": "torch.cuda, or nvidia-smi, tells which GPUs there are",
    "determined.horovod": (
        "import horovod.torch as hvd yourself, and join its ranks by DistributedContext.from_horovod(hvd); a "
        "PyTorchTrial trains with torch distributed"
    ),
    "determined.ipc": "use core_context.distributed: gather, allgather, broadcast",
    "determined.keras.TFKerasTrainConfig": _INSIDE,
    "determined.keras.TFKerasTrialController": _INSIDE,
    "determined.keras.TrialControllerMultiplexer": _INSIDE,
    "determined.launch.wrap_rank.forward_stream": _INSIDE,
    "determined.launch.wrap_rank.run_all": _INSIDE,
    "determined.layers": _INSIDE,
    "determined.lightning.DetLogger": "import it from determined.lightning.experimental",
    "determined.load": _INSIDE,
    "determined.monkey_patch": _INSIDE,
    "determined.profiler": "call Trainer.configure_profiler(), or context.set_profiler() for torch's own",
    "determined.pytorch.deepspeed.DeepSpeedTrialController": _INSIDE,
    "determined.pytorch.dsat": "write a search method (determined.searcher), or search over the settings",
    "determined.pytorch.lightning": "use determined.lightning.DetCallback with Lightning's own Trainer",
    "determined.tensorboard.AzureTensorboardManager": _EVENT_FILES,
    "determined.tensorboard.S3TensorboardManager": _EVENT_FILES,
    "determined.tensorboard.SharedFSTensorboardManager": _EVENT_FILES,
    "determined.tensorboard.TensorboardManager": _EVENT_FILES,
    "determined.tensorboard.azure": _EVENT_FILES,
    "determined.tensorboard.base": _EVENT_FILES,
    "determined.tensorboard.build": _EVENT_FILES,
    "determined.tensorboard.fetchers": "run det tensorboard start",
    "determined.tensorboard.gcs": _EVENT_FILES,
    "determined.tensorboard.get_base_path": _EVENT_FILES,
    "determined.tensorboard.get_experiment_sync_path": _EVENT_FILES,
    "determined.tensorboard.get_sync_path": _EVENT_FILES,
    "determined.tensorboard.metric_writers.tensorflow": (
        "write with tf.summary into core_context.train.get_tensorboard_path()"
    ),
    "determined.tensorboard.s3": _EVENT_FILES,
    "determined.tensorboard.shared": _EVENT_FILES,
    "determined.util.check_sshd": _INSIDE,
    "determined.util.forward_signals": _INSIDE,
    "determined.util.signal_process_tree": _INSIDE,
    "determined.util.write_user_code": "the PyTorch Trainer stores the code, elsewhere copy it",
    "determined.workload": _INSIDE,
}


def explanation(name: str) -> str | None:
    """Return why a name is missing and what to do, or None if 0.25 did not have it either."""
    if name not in TABLE:
        return None
    return f"{name} of Determined 0.25 is not part of this library: {TABLE[name]}"


def attribute(module: str, name: str) -> AttributeError:
    """Return the error that a module's `__getattr__` raises."""
    return AttributeError(
        explanation(f"{module}.{name}") or f"module {module!r} has no attribute {name!r}", name=name
    )


def explain_in(module: str, **looked_up: Callable[[], Any]) -> None:
    """Give a module that is being loaded a `__getattr__` that explains why a name is missing.

    It is not defined in the module itself, because type checkers would then accept any name. A module that is
    not a package also sets `__path__` to an empty list: otherwise `from module import name` reports only that
    the name is missing. With `__path__`, Python looks for a submodule, and `_Finder` reports the reason.

    Names whose value changes are given with a function that returns it.
    """

    def missing(name: str) -> Any:
        if name in looked_up:
            return looked_up[name]()
        raise attribute(module, name)

    vars(sys.modules[module])["__getattr__"] = missing


class _Refusing(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError(explanation(module.__name__), name=module.__name__)


class _Finder(importlib.abc.MetaPathFinder):
    """Matches missing names after all other finders have failed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in TABLE:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Refusing(), is_package=True)


def install() -> None:
    """Install the finder. Has an effect once per process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
