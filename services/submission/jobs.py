"""Submission work that runs in other processes; `heavy` contains the functions."""

from __future__ import annotations

from services.kit.job import Job

_MODULE = "services.submission.heavy"
READ = Job(f"{_MODULE}:read", seconds=60)
"""Parse a large request and pack its files."""
COMPLETE = Job(f"{_MODULE}:complete", seconds=10)
"""Complete a configuration from the submitted text."""
MERGE = Job(f"{_MODULE}:merge", seconds=10)
"""Check a template's configuration."""
TASK = Job(f"{_MODULE}:task", seconds=10)
"""Check a task's configuration."""
TREE = Job(f"{_MODULE}:tree", seconds=30)
"""List the files of a context."""
ONE_FILE = Job(f"{_MODULE}:one_file", seconds=30)
"""Read one file of a context."""
