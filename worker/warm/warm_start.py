"""Decides which runs may start warm, and from which template."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from det_contracts.expconf import is_secret_name
from worker.environment import PORTS
from worker.warm import shadows, variables
from worker.warm.inside.ranks import PER_RANK

SHELL = ("sh", "-c")
LAUNCHER = "determined.launch.torch_distributed"
PYTHONS = ("python", "python3")
PLAIN_COMMAND = re.compile(r"[\w./=:,@%+-]+(?: +[\w./=:,@%+-]+)*")
"""A command that every shell splits at spaces and does not otherwise change."""
NAME = re.compile(r"[A-Za-z_]\w{0,99}(?:\.[A-Za-z_]\w{0,99}){0,20}", re.ASCII)
MAX_MODULES = 20_000
SET_PER_RUN = re.compile(rf"DET_\w*|CUDA_VISIBLE_DEVICES|{'|'.join(PORTS)}")
HARMLESS_VARIABLES = {
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONNOUSERSITE",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
}
"""Of the variables that affect how Python starts, those that a template obeys just as a script does."""


class Key(msgspec.Struct, frozen=True):
    """What runs must have in common to start from the same template."""

    user: str
    """The owner. No run is started from modules that another user's run reported."""
    words: tuple[str, ...]
    """The command line up to the script: shell, interpreter, flags."""
    env: tuple[tuple[str, str], ...]
    """The complete environment, without per-run values and secrets."""
    set_by_code: tuple[str, ...] = ()
    """Variables that the code sets. A package that reads one while it is imported is left to the script."""

    def command(self, *more: str) -> list[str]:
        """A command line that begins as those of its runs do."""
        if self.words[:2] == SHELL:
            return [*SHELL, " ".join((*self.words[2:], *more))]
        return [*self.words, *more]


class WarmStart(msgspec.Struct, frozen=True):
    """A warm start of one run."""

    key: Key
    main: str
    """The script, or the module after `-m`."""
    is_module: bool
    arguments: tuple[str, ...]
    names: tuple[str, ...]
    """Variables that the template lacks. A package that reads one during its import prevents a warm start."""
    importable: frozenset[str] = frozenset()
    """What its code could import instead of a package."""
    ranks: bool = False
    """Whether it is a launcher whose ranks may be forked, too."""
    folder: Path = Path()
    """Where it starts."""

    @property
    def words(self) -> list[str]:
        """The command line of its process."""
        begin = self.key.words[2:] if self.key.words[:2] == SHELL else self.key.words
        return [*begin, *(["-m"] if self.is_module else []), self.main, *self.arguments]

    def program(self) -> dict[str, object]:
        """Its main program, for a template."""
        return {
            "folder": str(self.folder),
            "main": self.main,
            "is_module": self.is_module,
            "arguments": self.arguments,
        }


class ColdStart(msgspec.Struct, frozen=True):
    """Why a run starts cold."""

    reason: str


def rank_variables(argv: Sequence[str], env: Mapping[str, str], slots: int) -> dict[str, str]:
    """The variables that torch's launcher adds to the environment of all ranks if it starts several.

    Libraries read them when they are loaded, which in a template happens before the launcher runs.
    """
    return (
        {"OMP_NUM_THREADS": "1"}
        if slots > 1 and _is_torch_launcher(argv) and "OMP_NUM_THREADS" not in env
        else {}
    )


def _is_torch_launcher(argv: Sequence[str]) -> bool:
    """Whether a command is torch's launcher with one rank for each slot."""
    _, words = _split_command(argv)
    return words[0:1] == ["python3"] and words[1:3] == ["-m", LAUNCHER] and "--" not in words


def plan_start(argv: Sequence[str], env: Mapping[str, str], cwd: Path, user: str) -> WarmStart | ColdStart:
    """The warm start of a command, or why it has none. Inspects the code in `cwd`."""
    shell, words = _split_command(argv)
    if not words or words[0] not in PYTHONS:
        return ColdStart("its entrypoint is not one command that begins with python3")
    flags = 2 if words[1:2] == ["-u"] else 1
    rest = words[flags:]
    is_module = rest[:1] == ["-m"]
    main, *arguments = rest[is_module:] or [""]
    if main.startswith("-") or not (NAME.fullmatch(main) if is_module else _is_script(cwd, main)):
        return ColdStart("its entrypoint is not a script or module, or passes Python flags other than -u")
    if why := _reason_against(env, cwd):
        return ColdStart(why)
    importable_names = shadows.importable(cwd)
    # Without the list, a template could load a package in place of the user's own file of that name.
    if importable_names is None:
        return ColdStart("its code has too many files to look through for names of packages")
    if not is_module:
        importable_names |= shadows.modules_beside(cwd / main)
    set_by_code = variables.set_by_code(cwd)
    if set_by_code is None:
        return ColdStart(
            "its code sets environment variables without showing which, or is too large to look through"
        )
    if native := sorted(filter(variables.is_native, set_by_code)):
        return ColdStart(f"its code sets {native[0]}, which libraries read when they are loaded")
    # Secrets are no part of the key, so no template's environment holds them for a run of somebody else.
    shared = {name: value for name, value in env.items() if not _is_per_run(name)}
    key = Key(user, (*shell, *words[:flags]), tuple(shared.items()), tuple(sorted(set_by_code)))
    ranks = _is_torch_launcher(argv)
    names = {*(env.keys() - shared.keys()), *set_by_code, *(PER_RANK if ranks else ())}
    return WarmStart(key, main, is_module, tuple(arguments), tuple(names), importable_names, ranks, cwd)


def _is_script(cwd: Path, main: str) -> bool:
    """Whether it is a plain file whose path every version of Python shows in the same way."""
    plain = main.removeprefix("./")
    return plain.endswith(".py") and os.path.normpath(plain) == plain and (cwd / plain).is_file()


def _split_command(argv: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The shell that runs a command, if any, and the command's words."""
    if len(argv) == 3 and tuple(argv[:2]) == SHELL:
        return SHELL, argv[2].split() if PLAIN_COMMAND.fullmatch(argv[2]) else []
    return (), list(argv)


def _is_per_run(name: str) -> bool:
    return SET_PER_RUN.fullmatch(name) is not None or is_secret_name(name)


def _reason_against(env: Mapping[str, str], cwd: Path) -> str:
    own = str(cwd.parent)
    for name, value in env.items():
        # Python reads these once, when it starts: in a template that was long ago.
        if name.startswith("PYTHON") and name not in HARMLESS_VARIABLES:
            return f"{name} is set, which changes how Python starts"
        # A template is shared by runs with folders of their own, and would keep the first one's.
        if own in value and not _is_per_run(name):
            return f"{name} names a folder of this run alone"
    folders = env.get("PYTHONPATH", "/").split(":")
    if not all(folder.startswith("/") for folder in folders):
        return "PYTHONPATH has a folder that depends on where the script runs"
    return ""


def reported_names(text: bytes) -> list[str]:
    """The module names that a script reported. Its output may be anything, so only valid names are kept."""
    texts = (line.decode("ascii", "replace") for line in text.splitlines()[:MAX_MODULES])
    return list(dict.fromkeys(name for name in texts if NAME.fullmatch(name)))


def is_switched_off(config: Mapping[str, Any]) -> bool:
    """Whether the configuration has `environment.warm: false`."""
    return (config.get("environment") or {}).get("warm") is False
