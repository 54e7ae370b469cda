"""Files in which TensorBoard's projector reads the names of further files to show.

Whoever starts a TensorBoard may read more than the author of the files: their own home, and the token of the
task. Before version 2.21, TensorBoard shows any file that such a file names, to everybody who sees its page.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

PROJECTOR, STATE = "projector_config.pbtxt", "checkpoint"
"""The projector's configuration, and the file in which TensorFlow notes the newest checkpoint of a folder."""


def leads_elsewhere(path: pathlib.Path) -> str:
    """Why a copied file must not be shown, because it names files outside its folder; "" if it may be."""
    if path.name not in (PROJECTOR, STATE):
        return ""
    try:
        from google.protobuf import text_format
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    except ImportError:
        # Then nothing reads them.
        return ""
    config = ProjectorConfig()
    try:
        # The state's field of interest has the same name in both. A state has others, too.
        text_format.Parse(path.read_text("utf-8"), config, allow_unknown_field=path.name == STATE)
    except (ValueError, text_format.ParseError, RecursionError) as error:
        return f"it cannot be read: {error}"
    return next((f"it names {named!r}" for named in _paths(config) if not _is_inside(named)), "")


def _paths(config: Any) -> Iterator[str]:
    yield from (config.model_checkpoint_path, config.model_checkpoint_dir)
    for embedding in config.embeddings:
        yield from (embedding.tensor_path, embedding.metadata_path, embedding.bookmarks_path)
        yield embedding.sprite.image_path


def _is_inside(path: str) -> bool:
    return not path.startswith(("/", "~")) and "://" not in path and ".." not in path.split("/")
