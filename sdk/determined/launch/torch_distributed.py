"""Starts one process per slot under torch's own launcher (launchers spec, section 4).

    python3 -m determined.launch.torch_distributed [[OVERRIDES...] --] (--trial MODULE:CLASS | SCRIPT...)

OVERRIDES are torchrun options and take precedence over those set here. SCRIPT is a command, such as
`python3 train.py`. The script must create the process group itself.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from determined.launch import _child, _ends, _grammar
from determined.launch._node import Node, c10d_port, missing, this_node

NAME = "determined.launch.torch_distributed"
USAGE = f"usage: python3 -m {NAME} [[OVERRIDES...] --] (--trial MODULE:CLASS | SCRIPT...)"


def parse_args(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the torchrun options and the script's command."""
    overrides, rest = _grammar.cut(args)
    return overrides, _grammar.command(rest, USAGE).script


def torchrun_args(node: Node, overrides: Sequence[str], script: Sequence[str]) -> list[str]:
    """Return the torchrun arguments for a node."""
    # Torch expands `${local_rank}` and unescapes `$$`; the script must get its arguments unchanged.
    address = "localhost" if node.alone else node.addresses[0]
    return [
        "--nnodes", str(len(node.addresses)),
        "--nproc_per_node", str(node.processes),
        "--node_rank", str(node.rank),
        # The cluster restarts the whole trial, from its checkpoint. Torch would restart it in place, on a
        # host that may be the cause.
        "--max_restarts", "0",
        "--master_addr", address,
        "--master_port", str(c10d_port()),
        "--module",
        *overrides,
        "determined.launch.wrap_rank", "RANK", "--",
        *(word.replace("$$", "$$$$") for word in script),
    ]  # fmt: skip


def main(args: Sequence[str] | None = None) -> int:
    """Run the script on this node's slots. Returns 0 if all processes returned 0."""
    overrides, script = parse_args(sys.argv[1:] if args is None else args)
    node = this_node(NAME, "torchrun")
    if importlib.util.find_spec("torch") is None:
        missing(NAME, "PyTorch", "no module named torch", ": pip install torch")
    os.environ["USE_TORCH_DISTRIBUTED"] = "True"
    os.environ["DET_CHIEF_IP"] = node.addresses[0]
    with tempfile.TemporaryDirectory(prefix="det-", ignore_cleanup_errors=True) as folder:
        notes = Path(folder) / "ends"
        _ends.begin(notes)
        os.environ[_ends.FILE] = str(notes)
        return _launch(torchrun_args(node, overrides, script), notes)


def _launch(args: list[str], notes: Path) -> int:
    # Imported by name, because -h and argument errors do not need torch.
    run: Any = importlib.import_module("torch.distributed.run")
    elastic: Any = importlib.import_module("torch.distributed.elastic.multiprocessing")
    errors: Any = importlib.import_module("torch.distributed.elastic.multiprocessing.errors")
    try:
        run.run(run.parse_args(args))
    except errors.ChildFailedError as error:
        failures = sorted(error.failures.items(), key=lambda each: each[1].timestamp)
        codes = {rank: _child.code_of(failure.exitcode) for rank, failure in failures}
        rank, code = _ends.first_failure(notes, codes)
        print(f"rank {rank} {_child.ending(code)}", file=sys.stderr, flush=True)
        return 1
    except elastic.SignalException as error:
        return 128 + int(error.sigval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
