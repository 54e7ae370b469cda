"""Starts one process per slot under horovodrun (launchers spec, section 5).

    python3 -m determined.launch.horovod [[OVERRIDES...] --] (--trial MODULE:CLASS | SCRIPT...)

With `--autohorovod`, a trial with one slot runs without Horovod, and one with more runs under torch's
launcher.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from determined.launch import _child, _grammar, _peers, _supervised, torch_distributed
from determined.launch._node import Node, missing, ssh_port, this_node

NAME = "determined.launch.horovod"
USAGE = f"usage: python3 -m {NAME} [[OVERRIDES...] --] (--trial MODULE:CLASS | SCRIPT...)"
RANKS = "HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK"
TORCH = 'or use "python3 -m determined.launch.torch_distributed" (PyTorch needs no Horovod)'


def parse_args(args: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """Return the horovodrun options, the script's command, and whether `--autohorovod` is set."""
    overrides, rest = _grammar.cut(args)
    options = _grammar.command(rest, USAGE, autohorovod=True)
    return overrides, options.script, options.autohorovod


def horovodrun_command(node: Node, overrides: Sequence[str], script: Sequence[str]) -> list[str]:
    """Return the command that the chief node runs."""
    # The chief by name `localhost`: horovodrun then starts its ranks without SSH.
    hosts = [f"localhost:{node.slot_counts[0]}"] + [
        f"{address}:{slots}" for address, slots in zip(node.addresses[1:], node.slot_counts[1:], strict=True)
    ]
    interface = ["--network-interface", node.interface] if node.interface and not node.alone else []
    return [
        *_supervised.server(node, "--on-fail", "SIGINT", "--on-exit", "WAIT"),
        "horovodrun", "-np", str(sum(node.slot_counts)), "-p", str(ssh_port()), "-H", ",".join(hosts),
        "--start-timeout", "1200", "--gloo-timeout-seconds", "240",
        *interface,
        *_tuning(node.config.get("optimizations") or {}),
        "--cache-capacity", "1024", "--no-hierarchical-allreduce", "--no-hierarchical-allgather",
        *(["--verbose"] if node.debug else []),
        *((node.config.get("data") or {}).get("__det_dtrain_args") or []),
        *overrides,
        *(["--mpi-args=-v --display-map"] if node.debug else []),
        "--",
        *_supervised.worker(node, RANKS, list(script)),
    ]  # fmt: skip


def _tuning(optimizations: dict[str, Any]) -> list[str]:
    if optimizations.get("auto_tune_tensor_fusion"):
        return ["--autotune", "--autotune-log-file", "autotune.csv"]
    return [
        "--fusion-threshold-mb", str(optimizations.get("tensor_fusion_threshold", 64)),
        "--cycle-time-ms", str(optimizations.get("tensor_fusion_cycle_time", 1)),
    ]  # fmt: skip


def main(args: Sequence[str] | None = None) -> int:
    """Run the script on all slots of the allocation. Returns horovodrun's exit code."""
    overrides, script, auto = parse_args(sys.argv[1:] if args is None else args)
    node = this_node(NAME, "horovodrun", trials_only=True)
    if auto:
        return autohorovod(node, script)
    if shutil.which("horovodrun") is None:
        missing(NAME, "Horovod", '"horovodrun" is not on PATH', f", {TORCH}")
    sshd = _peers.require_sshd(NAME, node) if not node.alone else ""
    environment = dict(os.environ)
    environment["DET_CHIEF_IP"] = node.addresses[0]
    if not node.chief:
        options = ("--on-fail", "SIGTERM", "--on-exit", "SIGTERM", "--signal-children")
        return _child.run(
            _peers.serve_ssh(node, sshd, _supervised.server(node, *options), environment), environment
        )
    _peers.wait_for_peers(node.addresses[1:], ssh_port())
    environment["USE_HOROVOD"] = "1"
    # mpirun would otherwise start processes through Slurm instead of SSH.
    environment.pop("SLURM_JOBID", None)
    return _child.run(horovodrun_command(node, overrides, script), environment)


def autohorovod(node: Node, script: list[str]) -> int:
    """Run without a launcher on one slot, and with torch's launcher on several."""
    if node.alone and node.slots <= 1:
        return _child.run(script)
    return torch_distributed.main(["--", *script] if "--" in script else script)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
