"""The work of submissions that is done by other processes; see `heavy` for what it is."""

from __future__ import annotations

from services.kit.job import Job

_HERE = "services.gateway.submit.heavy"
READ = Job(f"{_HERE}:read", seconds=60)
"""A large request with its files, which are packed."""
COMPLETE = Job(f"{_HERE}:complete", seconds=10)
"""A configuration, from the text that was sent to what is stored."""
MERGE = Job(f"{_HERE}:merge", seconds=10)
"""A configuration as a template has it."""
TREE = Job(f"{_HERE}:tree", seconds=30)
"""The files of a context."""
ONE_FILE = Job(f"{_HERE}:one_file", seconds=30)
"""One of them."""
