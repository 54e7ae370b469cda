"""Connects a runner to the cluster and submits the experiment it searches."""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from determined import _arguments, yamlfile
from determined import context as packing
from determined.transport import identity
from determined.transport.address import master_url
from determined.transport.rest import Session

logger = logging.getLogger("determined.searcher")
OPERATIONS_FILE = "operations.json"
"""Stored with the state of a search: operations that may not have been posted yet."""


@contextmanager
def open_session() -> Iterator[Session]:
    with Session(master_url(None)) as session:
        identity.sign_in(session)
        yield session


def create_experiment(
    session: Session,
    exp_config: dict[str, Any] | str,
    model_dir: str | None,
    includes: Sequence[str | Path] | None,
    once: uuid.UUID,
) -> int:
    """Submit the experiment, or return the one that an earlier identical call with this `once` created."""
    if not isinstance(exp_config, str | Path | dict):
        raise TypeError(_arguments.wrong("exp_config", "a path (str or Path) or a dict", exp_config))
    if model_dir is not None:
        _arguments.path("model_dir", model_dir)
    config = yamlfile.dump(exp_config) if isinstance(exp_config, dict) else yamlfile.read(Path(exp_config))
    files = (
        packing.pack(Path(model_dir), [Path(path) for path in includes or ()])
        if model_dir is not None
        else []
    )
    body = {"config": config, "modelDefinition": files, "activate": True}
    # Different code or a different configuration means a different experiment.
    key = uuid.uuid5(once, hashlib.sha256(json.dumps(body).encode()).hexdigest())
    headers = {"Idempotency-Key": str(key)}
    id = int(session.post("/api/v1/experiments", body, headers=headers)["experiment"]["id"])
    logger.info("Created experiment %s", id)
    return id
