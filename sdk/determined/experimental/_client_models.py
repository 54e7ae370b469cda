"""Functions of `client` about the model registry."""

from __future__ import annotations

from typing import Any

from determined.experimental._client_connection import connected, connection
from determined.experimental._enums import ModelOrderBy, ModelSortBy
from determined.experimental._model import Model


@connected
def create_model(name: str, description: str | None = "", metadata: dict[str, Any] | None = None) -> Model:
    """Create a model in the registry. You can then register checkpoints as its versions.

    Args:
        name: Name of the model. It must be unique.
        description: A description.
        metadata: Custom values by key.

    Returns:
        The model.

    Example:
        ```python
        model = client.create_model("digits")
        model.register_version(experiment.top_checkpoint().uuid)
        ```
    """
    return connection().create_model(name, description, metadata)


@connected
def get_model(identifier: str | int) -> Model:
    """Return a model from the registry.

    Args:
        identifier: Name or id of the model.

    Returns:
        The model.

    Raises:
        NotFoundException: If there is no such model.

    Example:
        ```python
        model = client.get_model("digits")
        ```
    """
    return connection().get_model(identifier)


@connected
def get_model_by_id(model_id: int) -> Model:
    """Return a model from the registry. Deprecated: `get_model` also accepts ids.

    Args:
        model_id: Id of the model.

    Raises:
        NotFoundException: If there is no such model.

    Example:
        ```python
        model = client.get_model(4)    # instead, which takes names and ids
        ```
    """
    return connection().get_model_by_id(model_id)


@connected
def get_models(
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: ModelOrderBy = ModelOrderBy.ASCENDING,
    name: str | None = "",
    description: str | None = "",
) -> list[Model]:
    """Return the matching models in the registry.

    Args:
        sort_by: What to sort by.
        order_by: Direction of the sort.
        name: The whole name; each `%` in it stands for any text, and then case does not count.
        description: A part of the description.

    Returns:
        The models; empty if there are none.

    Example:
        ```python
        for model in client.get_models(name="digits%"):
            print(model.name, model.labels)
        ```
    """
    return connection().get_models(sort_by, order_by, name or None, description or None)


@connected
def get_model_labels() -> list[str]:
    """Return all model labels, the most used first.

    Returns:
        The labels; empty if there are none.

    Example:
        ```python
        print(client.get_model_labels())
        ```
    """
    return connection().get_model_labels()
