"""Deletes checkpoints: the program of a CHECKPOINT_GC task.

Reads `deletion.json` in the info directory: `storage` (a checkpoint storage configuration), `roots` (where
the platform may delete), `uuids`, and `globs` (the files to delete, or null for all). The files left are
reported to the master. If `experiment` (an id) is given, the event files of its trials are deleted too.
"""

import json
import logging
import sys
import time

import msgspec

import determined as det
from det_contracts.roots import OutsideRoots, Roots, valid_checkpoint_id
from determined import storage
from determined._info import info_directory
from determined.core._tensorboard import stored_under_experiment
from determined.storage.privileged import fenced
from determined.transport.rest import Session

PATIENCE_S = 600.0
"""Once failures have taken so long, no more deletions are tried: each costs minutes if the storage hangs."""
logger = logging.getLogger("determined.exec.gc_checkpoints")


def main() -> int:
    """Delete the listed checkpoints. Missing ones are not an error. Returns 1 if any could not be deleted."""
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    order = json.loads((info_directory() / "deletion.json").read_text())
    try:
        manager = fenced(order["storage"], msgspec.convert(order["roots"], Roots))
    except ValueError as error:
        logger.error("nothing is deleted: %s", error)
        return 1
    globs, failed, lost_s = order.get("globs"), 0, 0.0
    for number, uuid in enumerate(order["uuids"]):
        if lost_s > PATIENCE_S:
            more = len(order["uuids"]) - number
            logger.error("it does not answer: %d more checkpoints are left to the next attempt", more)
            return 1
        began = time.monotonic()
        try:
            folder = _folder(uuid)
        except OutsideRoots as error:
            # The checkpoint was reported through the API with an unsafe id. The SDK wrote no files for it.
            logger.warning("%s", error)
            continue
        try:
            left = manager.delete(folder, ["**/*"] if globs is None else globs)
            if globs is None:
                logger.info("deleted checkpoint %s", uuid)
            else:
                _tell(uuid, left)
        except Exception as error:
            failed += 1
            lost_s += time.monotonic() - began
            logger.error("checkpoint %s could not be deleted: %s", uuid, error)
    if order.get("experiment") is not None:
        failed += _sweep(manager, order["experiment"])
    return 1 if failed else 0


def _folder(uuid: str) -> str:
    """The folder of a checkpoint in its storage. Raises `OutsideRoots`."""
    info = det.get_cluster_info()
    if info is not None and uuid == info.cluster_id:
        raise OutsideRoots(f"'{uuid}' is the cluster's id: the event files of all experiments are there")
    return valid_checkpoint_id(uuid)


def _sweep(manager: storage.StorageManager, experiment_id: int) -> int:
    """Delete event files. Returns 1 if they cannot be deleted."""
    info = det.get_cluster_info()
    if info is None:
        raise RuntimeError("checkpoints are deleted by tasks of a cluster")
    place = stored_under_experiment(info.cluster_id, experiment_id)
    try:
        manager.delete(place, ["**/*"])
    except Exception as error:
        logger.error("event files at %s could not be deleted: %s", place, error)
        return 1
    logger.info("deleted event files at %s", place)
    return 0


def _tell(uuid: str, left: dict[str, int]) -> None:
    info = det.get_cluster_info()
    if info is None:
        raise RuntimeError("checkpoints are deleted by tasks of a cluster")
    with Session(info.master_url) as session:
        session.token = info.session_token
        listed = {"uuid": uuid, "resources": {path: str(size) for path, size in left.items()}}
        session.patch("/api/v1/checkpoints", {"checkpoints": [listed]})
    logger.info("checkpoint %s has %d files now", uuid, len(left))


if __name__ == "__main__":
    sys.exit(main())
