"""Which commit of a checkout an experiment's code is, for people who ask why it exists."""

from __future__ import annotations

import re

from services.gateway.http.bodies import CreateExperiment

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
"""Name and password in a URL: whoever sees the experiment reads where its code came from."""


def commit_in_words(wish: CreateExperiment) -> str:
    """Like `commit 1924202 of https://git.example.org/x, by Ada <ada@example.org> on <day>`, or nothing."""
    if not wish.git_commit:
        return ""
    remote = f" of {_CREDENTIALS.sub('', wish.git_remote)}" if wish.git_remote else ""
    by = f", by {wish.git_committer}" if wish.git_committer else ""
    on = f" on {wish.git_commit_date}" if wish.git_commit_date else ""
    return f"commit {wish.git_commit}{remote}{by}{on}"
