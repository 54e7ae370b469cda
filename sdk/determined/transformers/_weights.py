"""Restores weights that the Trainer would lose on resume.

transformers 5 stores some models under weight names of older releases. `from_pretrained` translates the
names, but the Trainer does not: it only warns, and continues with its initial weights.
"""

from __future__ import annotations

import json
import logging
import pathlib
from typing import Any

logger = logging.getLogger("determined.transformers")
_ONE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def restore_renamed(model: Any, checkpoint: pathlib.Path) -> bool:
    """Load a checkpoint's weights if it has names the model lacks. Returns whether it did."""
    stored = _names(checkpoint)
    if not stored - set(model.state_dict()) or not hasattr(type(model), "from_pretrained"):
        return False
    logger.info("%s uses weight names of another transformers release: translating them", checkpoint)
    # It translates names of older releases, which the Trainer's own loading does not.
    whole = type(model).from_pretrained(str(checkpoint))
    model.load_state_dict(whole.state_dict())
    return True


def _names(checkpoint: pathlib.Path) -> set[str]:
    if (checkpoint / _INDEX).exists():
        return set(json.loads((checkpoint / _INDEX).read_text())["weight_map"])
    if not (checkpoint / _ONE).exists():
        return set()
    # The file starts with the length of its header, which is JSON.
    with (checkpoint / _ONE).open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return set(header) - {"__metadata__"}
