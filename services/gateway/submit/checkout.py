"""Describes which commit an experiment's code was checked out from."""

from __future__ import annotations

import re

from services.gateway.http.bodies import CreateExperiment

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
"""User name and password in a URL. They are removed because everyone who sees the experiment sees the URL."""


def commit_in_words(wish: CreateExperiment) -> str:
    """Like `commit 1924202 of https://git.example.org/x, by Ada <ada@example.org> on <day>`, or empty."""
    if not wish.git_commit:
        return ""
    remote = f" of {_CREDENTIALS.sub('', wish.git_remote)}" if wish.git_remote else ""
    by = f", by {wish.git_committer}" if wish.git_committer else ""
    on = f" on {wish.git_commit_date}" if wish.git_commit_date else ""
    return f"commit {wish.git_commit}{remote}{by}{on}"
