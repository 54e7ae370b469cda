"""Experiments of the client, by the name that older scripts import."""

from determined.experimental.client import ExperimentReference, ExperimentState

__all__ = ["ExperimentReference", "ExperimentState"]
