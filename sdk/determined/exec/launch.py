"""Runs the entrypoint of a trial on this node: `python3 -m determined.exec.launch`.

For images whose first process is a shell script. Workers start the entrypoint directly. Source: launchers
spec, section 2.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

import determined as det
from det_contracts import expconf
from determined import storage
from determined.launch import _child

logger = logging.getLogger("determined.exec.launch")


def main() -> int:
    """Validate the checkpoint storage and run the entrypoint. Returns its exit code."""
    info = det.get_cluster_info()
    if info is None:
        raise RuntimeError("determined.exec.launch must be run on-cluster")
    if info.task_type != "TRIAL":
        raise RuntimeError(f"determined.exec.launch runs trials, not tasks of type {info.task_type}")
    resources_id = os.environ.get("DET_RESOURCES_ID")
    if not resources_id:
        raise RuntimeError("DET_RESOURCES_ID is not set")
    config: dict[str, Any] = info.trial._config
    logging.basicConfig(level=logging.DEBUG if config.get("debug") else logging.INFO, format=det.LOG_FORMAT)
    logger.info(
        "New trial runner in (container %s) on agent %s: %s",
        *(resources_id, info.agent_id, json.dumps(expconf.mask_secrets(config))),
    )
    logger.info("Validating checkpoint storage ...")
    try:
        storage.validate_config(config["checkpoint_storage"])
    except Exception as error:
        logger.error("Checkpoint storage validation failed: %s", error)
        return 1
    argv = expconf.entrypoint_command(
        config["entrypoint"], slots=len(info.slot_ids), nodes=len(info.container_addrs)
    )
    logger.info("Launching: %s", argv)
    return _child.run(argv)


if __name__ == "__main__":
    sys.exit(main())
