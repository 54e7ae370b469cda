"""Ids of checkpoints where no secret can be told to the cluster, or there is none."""

import uuid


class RandomIds:
    """Part of a transport that makes ids which any trial could register."""

    def new_checkpoint_id(self) -> str:
        """Return an id for a checkpoint that is about to be stored."""
        return str(uuid.uuid4())
