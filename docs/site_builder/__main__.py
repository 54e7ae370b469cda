"""Builds the site: `python -m docs.site_builder [FOLDER]`, by default into `build/docs`.

Ends with status 1 when a page has a fault: a link or a name that leads nowhere.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from docs.site_builder.stage import ROOT, gather


def build(folder: Path) -> int:
    """Fill `folder` with the pages and the site made of them; returns the builder's exit status."""
    shutil.rmtree(folder, ignore_errors=True)
    gather(folder / "source")
    settings = (Path(__file__).parent / "zensical.toml").read_text().replace("@ROOT@", str(ROOT))
    (folder / "zensical.toml").write_text(settings)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(folder / "zensical.toml")]
    return subprocess.run(command, check=False).returncode  # noqa: S603 - the builder beside this Python


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"
    status = build(target)
    print(
        f"built: {target / 'site' / 'docs' / 'index.html'}"
        if status == 0
        else "the site has faults, see above"
    )
    sys.exit(status)
