"""The root of all classes that describe a model to be trained."""

from typing import Any


class Trial:
    """What `entrypoint: module:Class` must name a subclass of."""

    trial_context_class: type[Any] = object
    """What it is made with."""
    trial_controller_class: type[Any] | None = None
    """What trains it."""

    def __init__(self, context: Any) -> None:
        """Made with its context alone."""
