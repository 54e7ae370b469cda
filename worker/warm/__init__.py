"""Warm starts: scripts that begin in an interpreter which has their packages loaded already.

A *template* is a Python interpreter that was started exactly as a script would be, and has stopped just
before it runs its main program. There it imports what earlier runs of the same environment had loaded at
their end. A run is a fork of it (the shim), and a fork of that, which becomes an ordinary task and lets the
interpreter go on: the script is run by the same C code as after a cold start, with nothing of ours below it
on the stack.

- `wanted`: which runs may start warm, and from which template: the same user, interpreter, flags and
  environment.
- `shadows`: what the code of an experiment would import in place of a package.
- `nursery`: keeps the templates of one worker, within a budget of `memory`.
- `template`: one of them, as the worker sees it.
- `inside.ranks`: in the run of a launcher, a process that its ranks are forked from.
- `inside`: what runs in the template itself; standard library only, and of the platform the shim alone.

What cannot be started warm with the same result starts cold, and so does what finds no template ready.
"""
