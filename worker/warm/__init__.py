"""Warm starts: scripts that begin in an interpreter which has already loaded their packages.

A *template* is a Python interpreter that was started exactly as a script would be, and has stopped just
before running its main program. It imports what scripts of the same environment begin with, and what they
had loaded at their end. A run is a fork of it (the shim) and a fork of that, which becomes an ordinary task
and lets the interpreter continue: the same C code runs the script as after a cold start, and nothing of ours
is below it on the stack.

- `warm_start`: which runs may start warm, and from which template: the same user, interpreter, flags and
  environment.
- `shadows`: what the code of an experiment would import instead of a package.
- `variables`: which environment variables the code sets.
- `template_pool`: manages the templates of one worker within a `memory` budget.
- `template`: one of them, as the worker sees it.
- `inside.first_imports`: what a script begins with, as its text says.
- `inside.ranks`: for the run of a launcher, a process from which its ranks are forked.
- `inside.ending`: how a run ends, without taking apart what its template had loaded.
- `inside`: what runs in the template itself; it uses only the standard library and the shim.

A run that cannot start warm with the same result starts cold, as does a run for which no template is ready.
"""
