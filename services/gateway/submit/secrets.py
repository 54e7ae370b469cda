"""What becomes of secrets on their way from a request into the log, and what masked ones mean that come back.

Clients read a configuration, in which secrets are masked, and send it again: a fork, or a trial that goes on.
A mask then means the secret that is known: of the parent if that is the same user's, or of the cluster's own
storage.
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
"""What makes two storages the same for those who have keys to them."""
Where = tuple[str, ...]
Known = dict[Where, Any]


def of_cluster(config: Mapping[str, Any], storage: Mapping[str, Any] | None) -> Known:
    """The keys of the cluster's own storage, where a configuration names the same."""
    own = config.get("checkpoint_storage")
    if storage is None or not isinstance(own, dict):
        return {}
    # An address of the user's own would be sent the keys.
    if any(own.get(part) != storage.get(part) for part in PLACE):
        return {}
    return secrets_of({"checkpoint_storage": storage})


def filled(config: Mapping[str, Any], *known: Known, whose: str = "") -> dict[str, Any]:
    """A configuration with what its masks mean; raises `Refused` (400) for one that means nothing.

    `whose` names who else's secrets a mask may stand for, for the message.
    """

    def change(where: Where, value: Any) -> Any:
        name = ".".join(where)
        if is_sealed(value):
            raise invalid(f"{name}: a secret cannot be given as it lies in the log; give it in the clear")
        if not is_masked(value):
            return value
        for one in known:
            if one.get(where) is not None:
                return one[where]
        other = f": it is {whose}'s, and is not passed on" if whose else ""
        raise invalid(
            f"{name} is masked, and what it stands for is not known here{other}. Give the secret itself"
        )

    return with_secrets(config, change)


def filled_from_parent(
    backend: Backend,
    config: dict[str, Any],
    parent_id: int | None,
    user: str,
    workspace_storage: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The same, of an experiment that may be a fork of another one."""
    state = backend.catalogue.state
    parent = state.experiments.get(parent_id) if parent_id else None
    own: Known = {}
    if parent is not None and users.by_id_of(state, parent.user) == users.by_id_of(state, user):
        own = secrets_of(in_clear(state.submissions[parent.id].config, parent.user, backend.sealer))
    whose = parent.user if parent is not None and not own else ""
    places = [of_cluster(config, storage) for storage in (workspace_storage, backend.storage)]
    return filled(config, own, *places, whose=whose)


OF_WORKSPACES = "workspaces"
"""For whom the keys of workspaces' storages are sealed: they serve whoever works there."""


def of_template(name: str) -> str:
    """For whom the secrets of a template are sealed: not for its maker alone."""
    return f"template:{name}"


def in_clear(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """What lies in the log, opened; raises `Refused` (400) where the gateway has another key."""
    try:
        return opened(config, owner, sealer)
    except CannotOpen as error:
        raise invalid(str(error)) from None


def for_log(config: Mapping[str, Any], owner: str, sealer: Sealer | None) -> dict[str, Any]:
    """A configuration as its event holds it."""
    return sealed(config, owner, sealer)
