"""Deletes checkpoints: the program of a CHECKPOINT_GC task.

Reads `deletion.json` in the info directory: `storage`, a checkpoint storage configuration, and `uuids`.
"""

import json
import logging
import sys

import determined as det
from determined import storage
from determined._info import info_directory

logger = logging.getLogger("determined.exec.gc_checkpoints")


def main() -> int:
    """Delete every checkpoint listed; those that are gone already are no error. Status 1 if any stays."""
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    order = json.loads((info_directory() / "deletion.json").read_text())
    manager = storage.build(order["storage"])
    failed = 0
    for uuid in order["uuids"]:
        try:
            manager.delete(uuid, ["**/*"])
            logger.info("deleted checkpoint %s", uuid)
        except Exception as error:
            failed += 1
            logger.error("checkpoint %s could not be deleted: %s", uuid, error)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
