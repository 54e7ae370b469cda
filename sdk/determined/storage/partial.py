"""Files that are still arriving: under another name until they are whole."""

import os
import pathlib


def partial_path(path: pathlib.Path) -> pathlib.Path:
    """Return where the bytes of a file lie until all have arrived, beside the file."""
    return path.with_name(f".{path.name}.partial")


def finish(path: pathlib.Path) -> None:
    """Give a file that has arrived its name, over an older one."""
    os.replace(partial_path(path), path)
