"""The root of all classes that describe a model to be trained."""


class Trial:
    """What `entrypoint: module:Class` must name a subclass of."""
