"""Helpers for the files in a checkpoint directory."""

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from determined.core._encode import encode

METADATA_FILE = "metadata.json"


def plain_metadata(metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Return the metadata as JSON values. Raises TypeError if it is not a dict or has no JSON form."""
    if not isinstance(metadata, dict | None):
        raise TypeError(f"metadata of a checkpoint must be a dict, not {type(metadata).__name__}")
    # Now and not when it is written, so that a value without a JSON form fails before anything is stored.
    plain: dict[str, Any] = encode(metadata or {})
    return plain


def metadata_text(metadata: Mapping[str, Any]) -> str:
    """Return the content of `metadata.json`."""
    return json.dumps(metadata, indent=2)


def write_metadata(directory: pathlib.Path, metadata: Mapping[str, Any]) -> None:
    """Write `metadata.json`, replacing any older one."""
    (directory / METADATA_FILE).write_text(metadata_text(metadata))


def existing_directory(ckpt_dir: "str | os.PathLike[str] | None") -> pathlib.Path:
    """Return the directory to upload. Raises OSError or RuntimeError if there is none."""
    if ckpt_dir is None:
        raise RuntimeError(
            "core_context.checkpoint.upload() needs a directory; None is for ranks that add nothing to shards"
        )
    directory = pathlib.Path(ckpt_dir)
    if not directory.is_dir():
        kind = NotADirectoryError if directory.exists() else FileNotFoundError
        raise kind(f"core_context.checkpoint.upload() needs an existing directory, not {directory}")
    return directory
