"""Seals secrets on their way from a request into the log, and resolves masked ones.

Clients read a configuration with masked secrets and send it back, for a fork or to continue a trial. A mask
then stands for the known secret: that of the parent if it belongs to the same user, or that of the cluster's
own storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from det_contracts.expconf import is_masked, secrets_of, with_secrets
from det_contracts.problems import invalid
from services.kit.sealing import CannotOpen, Sealer, is_sealed, opened, sealed
from services.people import users

if TYPE_CHECKING:
    from services.gateway.running.backend import Backend

PLACE = ("type", "bucket", "container", "endpoint_url", "account_url")
"""The fields that identify a storage. Keys are reused only if all of them are equal."""
Where = tuple[str, ...]
Known = dict[Where, Any]


def of_cluster(config: Mapping[str, Any], storage: Mapping[str, Any] | None) -> Known:
    """The keys of the cluster's own storage, if the configuration names the same storage."""
    own = config.get("checkpoint_storage")
    if storage is None or not isinstance(own, dict):
        return {}
    # Otherwise a user could name an address of their own and have the keys sent there.
    if any(own.get(part) != storage.get(part) for part in PLACE):
        return {}
    return secrets_of({"checkpoint_storage": storage})


def filled(config: Mapping[str, Any], *known: Known, whose: str = "") -> dict[str, Any]:
    """Replace each mask by its secret. Raises `Refused` (400) if the secret is not known.

    `whose` is for the error message: the other user whose secret a mask may stand for.
    """

    def change(where: Where, value: Any) -> Any:
        name = ".".join(where)
        if is_sealed(value):
            raise invalid(f"{name}: a sealed secret is not accepted; give the secret itself")
        if not is_masked(value):
            return value
        for one in known:
            if one.get(where) is not None:
                return one[where]
        other = f": it is {whose}'s, and is not passed on" if whose else ""
        raise invalid(
            f"{name} is masked, and the secret behind it is not known here{other}. Give the secret itself"
        )

    return with_secrets(config, change)


def filled_from_parent(
    backend: Backend,
    config: dict[str, Any],
    parent_id: int | None,
    user: str,
    workspace_storage: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Resolve masks in an experiment's configuration, which may be a fork of another's."""
    state = backend.catalogue.state
    parent = state.experiments.get(parent_id) if parent_id else None
    own: Known = {}
    if parent is not None and users.by_id_of(state, parent.user) == users.by_id_of(state, user):
        own = secrets_of(in_clear(state.submissions[parent.id].config, parent.user, backend.sealer))
    whose = parent.user if parent is not None and not own else ""
    places = [of_cluster(config, storage) for storage in (workspace_storage, backend.storage)]
    return filled(config, own, *places, whose=whose)


OF_WORKSPACES = "workspaces"
"""The owner for whom the keys of workspace storages are sealed. Everyone in the workspace uses them."""


def of_template(name: str) -> str:
    """The owner for whom a template's secrets are sealed, so that others than its author can use it."""
    return f"template:{name}"


def in_clear(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """Unseal a logged configuration. Raises `Refused` (400) if the gateway has a different key."""
    try:
        return opened(config, owner, sealer)
    except CannotOpen as error:
        raise invalid(str(error)) from None


def for_log(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """Seal a configuration for its event."""
    return sealed(config, owner, sealer)
