"""Launcher that chooses by the number of slots, like `determined.launch.horovod --autohorovod`.

python3 -m determined.launch.autohorovod (--trial MODULE:CLASS | SCRIPT...)
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from determined.launch import _grammar, horovod
from determined.launch._node import this_node

NAME = "determined.launch.autohorovod"
USAGE = f"usage: python3 -m {NAME} (--trial MODULE:CLASS | SCRIPT...)"


def main(args: Sequence[str] | None = None) -> int:
    """Run the script on this node's slots."""
    _, rest = _grammar.cut(sys.argv[1:] if args is None else args)
    script = _grammar.command(rest, USAGE, autohorovod=True).script
    return horovod.autohorovod(this_node(NAME, "torchrun", trials_only=True), script)


if __name__ == "__main__":
    sys.exit(main())
