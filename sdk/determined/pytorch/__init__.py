"""Training of PyTorch models: resumable, distributed, and with hyperparameter search (Trainer spec)."""

from determined._training.reducer import Reducer
from determined._training.units import Batch, Epoch, TrainUnit
from determined.pytorch import samplers
from determined.pytorch._callback import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._data import TorchData, data_length, to_device
from determined.pytorch._experimental import PyTorchExperimentalContext
from determined.pytorch._init import init
from determined.pytorch._load import CheckpointLoadContext, load_trial_from_checkpoint_path
from determined.pytorch._loader import DataLoader
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._metric_reducers import MetricReducer
from determined.pytorch._trainer import Trainer
from determined.pytorch._trial import PyTorchTrial
from determined.pytorch.samplers import adapt_batch_sampler

PyTorchTrial.trial_context_class = PyTorchTrialContext
PyTorchTrial.trial_controller_class = Trainer

__all__ = [
    "Batch",
    "CheckpointLoadContext",
    "DataLoader",
    "Epoch",
    "LRScheduler",
    "MetricReducer",
    "PyTorchCallback",
    "PyTorchExperimentalContext",
    "PyTorchTrial",
    "PyTorchTrialContext",
    "Reducer",
    "TorchData",
    "TrainUnit",
    "Trainer",
    "adapt_batch_sampler",
    "data_length",
    "init",
    "load_trial_from_checkpoint_path",
    "samplers",
    "to_device",
]
