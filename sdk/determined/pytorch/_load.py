"""Loads trials from checkpoints, for inspection or inference (Trainer spec, section 17)."""

from __future__ import annotations

import json
import logging
import pathlib
from typing import Any, TypeVar, overload

import numpy as np
import torch

from determined import _arguments, core
from determined._training import code
from determined._training.settings import Settings
from determined.errors import InternalException
from determined.pytorch import _checkpoint
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._trial import PyTorchTrial

logger = logging.getLogger("determined.pytorch")
TrialClass = TypeVar("TrialClass", bound=PyTorchTrial)


class CheckpointLoadContext(PyTorchTrialContext):
    """A context for constructing a trial outside training. Models are not moved and nothing is reported.

    Example:
        ```python
        context = pytorch.CheckpointLoadContext(hparams={"lr": 0.1, "n_filters": 8})
        trial = MnistTrial(context)    # its models have their initial weights
        ```
    """

    def __init__(self, hparams: dict[str, Any] | None = None, exp_conf: dict[str, Any] | None = None) -> None:
        """Create a context for one process, on the CPU.

        Args:
            hparams: Hyperparameters by name, as the trial reads them.
            exp_conf: The experiment configuration, if the trial reads it.
        """
        super().__init__(core._dummy_init(), Settings(hparams, exp_conf, 1), torch.device("cpu"))

    def wrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        """Register a model without moving it.

        Args:
            model: The model.

        Returns:
            The same model.

        Example:
            ```python
            context = pytorch.CheckpointLoadContext(hparams={"n_filters": 8})
            model = context.wrap_model(network(8))    # stays on the CPU
            ```
        """
        self.models.append(model)
        return model


@overload
def load_trial_from_checkpoint_path(
    path: str,
    trial_class: type[TrialClass],
    trial_kwargs: dict[str, Any] | None = None,
    torch_load_kwargs: dict[str, Any] | None = None,
    **kwargs: Any,
) -> TrialClass: ...


@overload
def load_trial_from_checkpoint_path(
    path: str,
    trial_class: None = None,
    trial_kwargs: dict[str, Any] | None = None,
    torch_load_kwargs: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Any: ...


def load_trial_from_checkpoint_path(
    path: str,
    trial_class: type[PyTorchTrial] | None = None,
    trial_kwargs: dict[str, Any] | None = None,
    torch_load_kwargs: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Return the trial of a downloaded checkpoint, with its weights.

    Args:
        path: Directory of the checkpoint, as returned by `Checkpoint.download()`.
        trial_class: The class of the trial. By default it is imported from the code in the checkpoint,
            which runs that code.
        trial_kwargs: Additional arguments for the class.
        torch_load_kwargs: Arguments for `torch.load`. By default files are treated as untrusted. Use
            `{"weights_only": False}` only for files whose origin you trust.
        **kwargs: Deprecated: arguments for `torch.load`, one by one.

    Returns:
        A `PyTorchTrial` constructed with a `CheckpointLoadContext`. Its models are on the CPU and have
        the weights of the checkpoint. For a pre-0.14 class, which has `build_model`, the model itself.

    Raises:
        TypeError: If an argument has the wrong type.
        AssertionError: If the directory is not the checkpoint of a trial.
        ValueError: If the class cannot be imported or is not a `PyTorchTrial`, or if `torch_load_kwargs`
            and extra keyword arguments are both given.
        RuntimeError: If the checkpoint contains more than tensors, numbers, text and arrays of them.
        InternalException: If the file with the weights is missing.

    Example:
        ```python
        checkpoint = client.get_experiment(7).top_checkpoint()
        trial = pytorch.load_trial_from_checkpoint_path(checkpoint.download())
        trial.model.eval()
        trial.model(images)            # images: (records, ...) as the model takes them
        ```
    """
    if kwargs and torch_load_kwargs:
        raise ValueError("give torch_load_kwargs, or its parts as arguments, not both")
    if kwargs:
        logger.warning("arguments for torch.load are deprecated here: use torch_load_kwargs")
    _arguments.path("path", path)
    if trial_class is not None and not isinstance(trial_class, type):
        raise TypeError(_arguments.wrong("trial_class", "a class, or None", trial_class))
    for name, arguments in (("trial_kwargs", trial_kwargs), ("torch_load_kwargs", torch_load_kwargs)):
        if arguments is not None:
            _arguments.mapping(name, arguments, "a dict of arguments")
    folder = pathlib.Path(path)
    load_data = _load_data(folder)
    kind = trial_class or _trial_class(folder, load_data)
    context = CheckpointLoadContext(load_data.get("hparams"), load_data.get("experiment_config"))
    trial = kind(context, **(trial_kwargs or {}))
    state = _checkpoint._modern(_read(folder, torch_load_kwargs or kwargs))
    if not context.models and hasattr(trial, "build_model"):
        model = trial.build_model()
        _checkpoint.load_models([model], state["models_state_dict"])
        return model
    _checkpoint.load_models(context.models, state["models_state_dict"])
    return trial


def _load_data(folder: pathlib.Path) -> dict[str, Any]:
    for name in (_checkpoint.LOAD_DATA, "metadata.json"):
        if (folder / name).exists():
            load_data: dict[str, Any] = json.loads((folder / name).read_text())
            return load_data
    raise AssertionError(
        f"{folder} holds neither {_checkpoint.LOAD_DATA} nor metadata.json: it is not the checkpoint of a "
        "trial"
    )


def _trial_class(folder: pathlib.Path, load_data: dict[str, Any]) -> Any:
    config = load_data.get("experiment_config") or {}
    name = load_data.get("trial_cls_spec") or config.get("entrypoint") or ""
    try:
        imported = code.trial_class(folder, str(name))
    except ValueError as error:
        raise ValueError(f"{error}; pass trial_class") from error
    # Trial classes of those releases have no common base, but this method.
    before_0_14 = isinstance(imported, type) and hasattr(imported, "build_model")
    if not before_0_14 and not (isinstance(imported, type) and issubclass(imported, PyTorchTrial)):
        raise ValueError(f"'{name}' of the checkpoint is not a PyTorchTrial: pass trial_class")
    return imported


def _read(folder: pathlib.Path, options: dict[str, Any]) -> dict[str, Any]:
    names = (_checkpoint.STATE, *_checkpoint._OLD_STATES)
    path = next((folder / name for name in names if (folder / name).exists()), None)
    if path is None:
        raise InternalException(f"{folder} holds no {_checkpoint.STATE}")
    # The caller has decided, who knows where the checkpoint comes from.
    if "weights_only" in options:
        state: dict[str, Any] = torch.load(path, **options)
        return state
    try:
        with torch.serialization.safe_globals(_numpy_types()):
            safe: dict[str, Any] = torch.load(path, weights_only=True, **options)
            return safe
    except Exception as error:
        raise RuntimeError(
            f"{path} holds more than tensors, numbers, text and arrays of them, and loading it could run "
            f'code: if you trust its origin, pass torch_load_kwargs={{"weights_only": False}} ({error})'
        ) from error


def _numpy_types() -> list[Any]:
    """Return what pickled arrays and scalars of numbers and text consist of. None of it runs code."""
    functions = {"_reconstruct": np.ndarray(0).__reduce__()[0], "scalar": np.float64(0).__reduce__()[0]}
    dtypes = [type(np.dtype(code)) for code in np.typecodes["All"].replace("O", "")]
    # Also under their NumPy 1.x names: the module moved, but the functions are the same.
    named = [
        (function, f"numpy.{core}.multiarray.{name}")
        for name, function in functions.items()
        for core in ("core", "_core")
    ]
    return [*named, np.ndarray, np.dtype, *dict.fromkeys(dtypes)]
