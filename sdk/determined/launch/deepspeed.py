"""Starts one process per slot under DeepSpeed's launcher (launchers spec, section 6).

python3 -m determined.launch.deepspeed [[OVERRIDES...] --] (--trial MODULE:CLASS | SCRIPT...)
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from determined.launch import _child, _grammar, _peers, _supervised
from determined.launch._node import Node, missing, ssh_port, stop, this_node

NAME = "determined.launch.deepspeed"
USAGE = f"usage: python3 -m {NAME} [[OVERRIDES...] --] (--trial MODULE:CLASS | SCRIPT...)"
TORCH = 'or use "python3 -m determined.launch.torch_distributed"'
ENVIRONMENT_FILE = ".deepspeed_env"
NOT_FOR_OTHERS = re.compile(
    r"BASH_FUNC_.*|OLDPWD$|HOSTNAME$|.*CUDA_VISIBLE_DEVICES|SLURM_PROCID$|DET_SLOT_IDS$|DET_AGENT_ID$"
)
"""Variables specific to one node, matched from the start of the name."""
Version = tuple[int, ...]


def parse_args(args: Sequence[str]) -> list[str]:
    """Return the script's command."""
    return _split(args)[1]


def _split(args: Sequence[str]) -> tuple[list[str], list[str]]:
    words = list(args)
    overrides: list[str] = []
    options = ("--trial", *_grammar.HELP)
    if words[:1] == ["--"]:
        words = words[1:]
    elif "--" in words and words[0].startswith("-") and not words[0].startswith(options):
        overrides, words = _grammar.cut(words)
    return overrides, _grammar.command(words, USAGE).script


def deepspeed_command(
    node: Node, overrides: Sequence[str], script: Sequence[str], version: Version, hostfile: Path | None
) -> list[str]:
    """Return the command that the chief node runs."""
    options = ("--on-fail", "SIGTERM", "--on-exit", "SIGTERM", "--grace-period", "5", "--signal-children")
    return [
        *_supervised.server(node, *options),
        "deepspeed",
        *(["-H", str(hostfile)] if hostfile is not None else []),
        *_count(node, hostfile),
        "--master_addr", "localhost" if node.alone else node.addresses[0],
        "--no_python", "--no_local_rank",
        # DeepSpeed's own check does not know the port of our servers, which `wait_for_peers` has tried
        # already.
        *(["--no_ssh_check"] if version > (0, 6, 4) else []),
        *overrides,
        "--",
        *_supervised.worker(node, "RANK", list(script)),
    ]  # fmt: skip


def _count(node: Node, hostfile: Path | None) -> list[str]:
    """Return the process count option if DeepSpeed would otherwise count all GPUs of the machine."""
    if hostfile is not None or os.environ.get("CUDA_VISIBLE_DEVICES"):
        return []
    return ["--num_gpus", str(node.processes)]


def main(args: Sequence[str] | None = None) -> int:
    """Run the script on all slots of the allocation. Returns DeepSpeed's exit code."""
    overrides, script = _split(sys.argv[1:] if args is None else args)
    node = this_node(NAME, "deepspeed", trials_only=True)
    version = _version()
    if shutil.which("deepspeed") is None:
        missing(NAME, "DeepSpeed", '"deepspeed" is not on PATH', f" (pip install deepspeed), {TORCH}")
    if not node.alone and (0, 6, 1) <= version <= (0, 6, 4):
        raise ValueError("deepspeed 0.6.1 to 0.6.4 cannot train on several nodes: install another version")
    sshd = _peers.require_sshd(NAME, node) if not node.alone else ""
    environment = _environment(node)
    hostfile = _hostfile(node) if not node.alone else None
    if hostfile is not None:
        environment["DET_DEEPSPEED_HOSTFILE_PATH"] = str(hostfile)
    if not node.chief:
        options = ("--on-fail", "SIGTERM", "--on-exit", "SIGTERM", "--grace-period", "5", "--signal-children")
        return _child.run(
            _peers.serve_ssh(node, sshd, _supervised.server(node, *options), environment), environment
        )
    command = deepspeed_command(node, overrides, script, version, hostfile)
    if node.alone:
        return _child.run(command, environment)
    return _over_ssh(node, sshd, command, environment, version)


def _environment(node: Node) -> dict[str, str]:
    variables = dict(os.environ)
    variables["DET_CHIEF_IP"] = node.addresses[0]
    variables["USE_DEEPSPEED"] = "1"
    # It would name the nodes of an enclosing run.
    variables.pop("DET_DEEPSPEED_HOSTFILE_PATH", None)
    interface = variables.get("DET_INTER_NODE_NETWORK_INTERFACE")
    if variables.get("CUDA_VISIBLE_DEVICES") and interface and "NCCL_SOCKET_IFNAME" not in variables:
        variables["NCCL_SOCKET_IFNAME"] = interface
    return variables


def _over_ssh(
    node: Node, sshd: str, command: list[str], environment: dict[str, str], version: Version
) -> int:
    environment["PDSH_SSH_ARGS"] = (
        # The keys of the nodes are made for this allocation, so no host key can be known before.
        f"-o PasswordAuthentication=no -o StrictHostKeyChecking=no -p {ssh_port()} -2 -a -x %h"
    )
    Path(ENVIRONMENT_FILE).write_text(environment_file(environment, version))
    own = subprocess.Popen(_peers.sshd_command(sshd, node.debug))
    try:
        _peers.wait_for_peers(node.addresses, ssh_port())
        return _child.run(command, environment)
    finally:
        # It serves until it is killed.
        own.kill()
        own.wait()


def environment_file(environment: Mapping[str, str], version: Version) -> str:
    """Return the environment that DeepSpeed sends to the other nodes, without node-specific variables."""
    quoted = shlex.quote if version >= (0, 6, 2) else str
    exported = {name: value for name, value in environment.items() if not NOT_FOR_OTHERS.match(name)}
    return "".join(f"{name}={quoted(value)}\n" for name, value in exported.items())


def _hostfile(node: Node) -> Path:
    """Write the list of nodes and slots. If nodes share a host, the first one writes it."""
    path = Path(tempfile.gettempdir()) / f"hostfile-{node.name_of_files}.txt"
    with path.with_suffix(".lock").open("w") as lock:
        # The first node to come writes; the others would otherwise read a file that is half written.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.lexists(path):
            rows = zip(node.addresses, node.slot_counts, strict=True)
            path.write_text("".join(f"{address} slots={slots}\n" for address, slots in rows))
        elif path.lstat().st_uid != os.getuid():
            # It would send this trial's environment to hosts that somebody else chose.
            raise PermissionError(
                f"{path} was made by another user: remove it, or set TMPDIR to another folder"
            )
    return path


def _version() -> Version:
    try:
        version = importlib.metadata.version("deepspeed")
    except importlib.metadata.PackageNotFoundError:
        missing(NAME, "DeepSpeed", "no such package", f" (pip install deepspeed), {TORCH}")
    version_match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if version_match is None:
        stop(f"{NAME}: unrecognized version of deepspeed: {version!r}")
    return tuple(int(part) for part in version_match.groups())


if __name__ == "__main__":
    sys.exit(main())
