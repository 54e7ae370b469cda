"""A small program that runs one command and outlives the worker that asked for it.

    python -I -S worker/shim/__main__.py RUN_DIR

`RUN_DIR/spec.json` says what to run: `argv`, `cwd`, `env`, perhaps `fence` and `end`. The shim detaches into
a session of its own, starts the command as leader of another, and then

- answers: the call above returns 0 once `running.json` or `exit.json` is there, 1 when neither could be;
- keeps what the command prints in `RUN_DIR/spool/`, whatever the disk does, without holding the command up;
- passes signals on to the command alone; SIGQUIT means: kill everything that came of the command, now;
- where the specification has a `fence` (`contact`, a file, and `after_s`), ends everything when the time in
  the file is so long ago;
- where it has an `end` (`argv`, `env`), the command is a container engine's: the shim runs that, too, before
  it says that the run is over, as killing the engine's program does not end the container;
- when the command has ended, ends what it left behind (SIGTERM, 3 s, SIGKILL), waits at most 2 s for
  the end of the output, and writes `exit.json`.

Linux, standard library only, and few modules of that: it starts for every task. Modules of this folder
import nothing else of the platform. Source: launchers spec, section 2.
"""
