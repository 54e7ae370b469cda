"""Sets the version of Steadfast in every file that states it.

python -m deploy.set_version 0.2.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = (r'(?<=^version = ")[^"]+', r'(?<="steadfast-contracts==)[^"]+', r'(?<="steadfast-sdk==)[^"]+')
PLACES = {
    "pyproject.toml": PROJECT,
    "contracts/pyproject.toml": PROJECT[:1],
    "sdk/pyproject.toml": PROJECT[:2],
    "sdk/determined/__version__.py": (r'(?<=\+steadfast\.)[^"]+',),
    "worker/registration.py": (r'(?<=^VERSION = ")[^"]+',),
    "deploy/helm/steadfast/Chart.yaml": (r"(?<=^version: ).+", r"(?<=^appVersion: ).+"),
}
"""Patterns of the version by file. Each occurs once."""


def set_version(version: str, root: Path = ROOT) -> None:
    """Write the version to all files below a root. Raises `ValueError`, and writes none, if one lacks it."""
    # Python and Helm write others, such as release candidates, each in its own way.
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ValueError(f"'{version}' is no version: give one like 0.2.0")
    texts: dict[Path, str] = {}
    for name, patterns in PLACES.items():
        path = root / name
        texts[path] = path.read_text()
        for pattern in patterns:
            texts[path], count = re.subn(pattern, version, texts[path], flags=re.MULTILINE)
            if count != 1:
                raise ValueError(
                    f"{name} has {count} places like {pattern}, not 1: correct PLACES in {__file__}"
                )
    for path, text in texts.items():
        path.write_text(text)


if __name__ == "__main__":
    try:
        set_version(*sys.argv[1:2] or [""])
    except ValueError as error:
        sys.exit(str(error))
