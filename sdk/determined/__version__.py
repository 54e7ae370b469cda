"""The version: the API that scripts may rely on, then the release of this project."""

__version__ = "0.25.0+steadfast.0.1.0"
