"""The model registry of the client, by the name that older scripts import."""

from determined.experimental.client import Model, ModelOrderBy, ModelSortBy, ModelVersion

__all__ = ["Model", "ModelOrderBy", "ModelSortBy", "ModelVersion"]
