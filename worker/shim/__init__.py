"""A small program that runs one command and outlives the worker that started it.

    python -I -S worker/shim/__main__.py RUN_DIR

`RUN_DIR/spec.json` says what to run: `argv`, `cwd`, `env`, and optionally `fence` and `end`. The shim
detaches into a session of its own, starts the command as the leader of another session, and then

- answers: the call above returns 0 once `running.json` or `exit.json` exists, and 1 if neither could be
  written;
- stores the command's output in `RUN_DIR/spool/`, whatever state the disk is in, without blocking the
  command;
- forwards signals to the command only; SIGQUIT means: kill the command and everything it started, now;
- if the specification has a `fence` (`contact`, a file, and `after_s`), kills everything once the time in the
  file is that long ago;
- if it has an `end` (`argv`, `env`), the command belongs to a container engine: the shim also runs `end`
  before it reports the end of the run, because killing the engine's program does not end the container;
- after the command has ended, ends what it left behind (SIGTERM, 3 s, SIGKILL), waits at most 2 s for the end
  of the output, and writes `exit.json`.

Linux and standard library only, and few modules of that, because the shim starts for every task. Modules of
this folder import nothing else of the platform. Source: launchers spec, section 2.
"""
