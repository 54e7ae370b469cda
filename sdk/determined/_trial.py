"""The base class of all model definitions."""

from typing import Any


class Trial:
    """Base class of the class that `entrypoint: module:Class` names."""

    trial_context_class: type[Any] = object
    """Class of the context that the trial is constructed with."""
    trial_controller_class: type[Any] | None = None
    """Class of the controller that trains the model."""

    def __init__(self, context: Any) -> None:
        """Construct the trial from its context."""
