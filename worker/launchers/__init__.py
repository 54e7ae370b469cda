"""How a worker starts the commands of tasks: as processes of its host, or in containers (decision 54).

The shim is the same for all. A container's command is an engine's command line, which stays in the
foreground: the container's output and exit status pass through it, and a restarted worker finds the shim
again. So all that an engine has to provide here is command lines.
"""

from worker.launchers.apptainer import Apptainer
from worker.launchers.engine import Container, Engine, Mount, Refused, cli_environment
from worker.launchers.oci import Docker, Podman

PROCESS = "process"
ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Docker(), Podman(), Apptainer())}

__all__ = [
    "ENGINES",
    "PROCESS",
    "BadLauncher",
    "Container",
    "Engine",
    "Mount",
    "Refused",
    "cli_environment",
    "engine_named",
]


class BadLauncher(ValueError):
    """There is no launcher with this name; the text lists the valid ones."""


def engine_named(name: str) -> Engine | None:
    """Return the engine that a setting names; None for plain processes. Raises `BadLauncher`.

    Example: `engine_named("podman").command(container)`.
    """
    if name == PROCESS:
        return None
    try:
        return ENGINES[name]
    except KeyError:
        names = ", ".join((PROCESS, *ENGINES))
        raise BadLauncher(f"STEADFAST_WORKER_LAUNCHER={name}: expected one of {names}") from None
