"""Seals secrets on their way from a request into the log, and resolves masked ones.

Clients read a configuration with masked secrets and send it back, for a fork or to continue a trial. A mask
then stands for the known secret: that of the parent if it belongs to the same user, or that of the cluster's
own storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from det_contracts.expconf import is_masked, replace_secrets, secrets_of
from det_contracts.problems import invalid
from services.kit.sealing import CannotOpen, Sealer, is_sealed, open_secrets, seal_secrets
from services.people import users

if TYPE_CHECKING:
    from services.rest_requests.backend import Backend

STORAGE_IDENTITY_FIELDS = ("type", "bucket", "container", "endpoint_url", "account_url")
"""The fields that identify a storage. Keys are reused only if all of them are equal."""
ConfigPath = tuple[str, ...]
SecretsByPath = dict[ConfigPath, Any]


def cluster_secrets(config: Mapping[str, Any], storage: Mapping[str, Any] | None) -> SecretsByPath:
    """The keys of the cluster's own storage, if the configuration names the same storage."""
    own = config.get("checkpoint_storage")
    if storage is None or not isinstance(own, dict):
        return {}
    # Otherwise a user could name an address of their own and have the keys sent there.
    if any(own.get(part) != storage.get(part) for part in STORAGE_IDENTITY_FIELDS):
        return {}
    return secrets_of({"checkpoint_storage": storage})


def unmask(config: Mapping[str, Any], *known_secrets: SecretsByPath, other_owner: str = "") -> dict[str, Any]:
    """Replace each mask by its secret. Raises `Refused` (400) if the secret is not known.

    `other_owner` is for the error message: the other user whose secret a mask may stand for.
    """

    def change(path: ConfigPath, value: Any) -> Any:
        name = ".".join(path)
        # It may have been copied from the log, where it belongs to somebody else (decision 29).
        if is_sealed(value):
            raise invalid(f"{name}: a sealed secret is not accepted; give the secret itself")
        if not is_masked(value):
            return value
        for secrets in known_secrets:
            if secrets.get(path) is not None:
                return secrets[path]
        other = f": it is {other_owner}'s, and is not passed on" if other_owner else ""
        raise invalid(
            f"{name} is masked, and the secret behind it is not known here{other}. Give the secret itself"
        )

    return replace_secrets(config, change)


def unmask_from_parent(
    backend: Backend,
    config: dict[str, Any],
    parent_id: int | None,
    user: str,
    workspace_storage: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Resolve masks in an experiment's configuration, which may be a fork of another's."""
    state = backend.catalogue.state
    parent = state.experiments.get(parent_id) if parent_id else None
    own: SecretsByPath = {}
    # By id: a user who was renamed is still the owner of the parent.
    if parent is not None and users.id_by_name(state, parent.user) == users.id_by_name(state, user):
        own = secrets_of(unseal_config(state.submissions[parent.id].config, parent.user, backend.sealer))
    other_owner = parent.user if parent is not None and not own else ""
    places = [cluster_secrets(config, storage) for storage in (workspace_storage, backend.storage)]
    return unmask(config, own, *places, other_owner=other_owner)


WORKSPACES_OWNER = "workspaces"
"""The owner for whom the keys of workspace storages are sealed. Everyone in the workspace uses them."""


def template_owner(name: str) -> str:
    """The owner for whom a template's secrets are sealed, so that others than its author can use it."""
    return f"template:{name}"


def unseal_config(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """Unseal a logged configuration. Raises `Refused` (400) if the gateway has a different key."""
    try:
        return open_secrets(config, owner, sealer)
    except CannotOpen as error:
        raise invalid(str(error)) from None


def seal_config(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """Seal a configuration for its event."""
    return seal_secrets(config, owner, sealer)
