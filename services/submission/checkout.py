"""Describes which commit an experiment's code was checked out from."""

from __future__ import annotations

import re

from services.rest_requests.bodies import CreateExperiment

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
"""User name and password in a URL. They are removed because everyone who sees the experiment sees the URL."""


def describe_commit(request: CreateExperiment) -> str:
    """Like `commit 1924202 of https://git.example.org/x, by Ada <ada@example.org> on <day>`, or empty."""
    if not request.git_commit:
        return ""
    remote = f" of {_CREDENTIALS.sub('', request.git_remote)}" if request.git_remote else ""
    by = f", by {request.git_committer}" if request.git_committer else ""
    on = f" on {request.git_commit_date}" if request.git_commit_date else ""
    return f"commit {request.git_commit}{remote}{by}{on}"
