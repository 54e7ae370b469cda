"""The public surface of `import determined as det` (core API spec, section 1)."""

import importlib
from typing import TYPE_CHECKING, Any

from determined import _absent
from determined.__version__ import __version__
from determined._import import import_from_path
from determined._info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo, get_cluster_info
from determined._legacy import EnvContext, ExperimentConfig, TrialContext, TrialController
from determined._trial import Trial
from determined.errors import InvalidHP

from determined import core, errors, util  # isort: skip

LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"

# Loaded at the first use, since importing some takes far longer than the rest of this package.
_LAZY = frozenset(
    {
        *("common", "constants", "experimental", "lightning", "pytorch", "searcher", "tensorboard"),
        "transformers",
    }
)

_absent.install()

__all__ = [
    "LOG_FORMAT",
    "ClusterInfo",
    "EnvContext",
    "ExperimentConfig",
    "InvalidHP",
    "RendezvousInfo",
    "ResourcesInfo",
    "Trial",
    "TrialContext",
    "TrialController",
    "TrialInfo",
    "__version__",
    "core",
    "errors",
    "get_cluster_info",
    "import_from_path",
    "util",
]


if TYPE_CHECKING:
    from determined import common as common
    from determined import constants as constants
    from determined import experimental as experimental
    from determined import lightning as lightning
    from determined import pytorch as pytorch
    from determined import searcher as searcher
    from determined import tensorboard as tensorboard
    from determined import transformers as transformers
else:
    # Hidden from type checkers, which would otherwise accept any attribute name.
    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            try:
                return importlib.import_module(f"determined.{name}")
            except ModuleNotFoundError as e:
                if e.name != f"determined.{name}":
                    raise
        raise _absent.attribute(__name__, name)
