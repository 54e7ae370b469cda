"""`det experiment create --git`: determines the git commit of the code."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from determined.cli.failure import Failure

_TIMEOUT_S = 60


def commit_of(model_dir: Path) -> dict[str, str]:
    """Return the commit checked out in a directory, in the form used in a submission.

    Args:
        model_dir: The root of a git checkout whose branch tracks a remote branch. Untracked files are
            ignored.

    Returns:
        `gitRemote` (URL of the remote repository), `gitCommit`, `gitCommitter` (`Name <address>`) and
        `gitCommitDate` (ISO 8601).

    Raises:
        Failure: If git, a checkout or a commit is missing, the branch tracks no remote branch, or tracked
            files differ from the commit.

    Example:
        `commit_of(Path("model"))["gitCommit"]` is like `"19242022b039ab90943e2991c00033472ba66b6c"`.
    """
    if not (model_dir / ".git").exists():
        raise Failure(
            f"{model_dir} is not the root of a git checkout; leave out --git, or run 'git init' there"
        )
    changed = _git(model_dir, "status", "--porcelain", "--untracked-files=no")
    if changed:
        raise Failure(
            f"files in {model_dir} differ from the commit; commit them or leave out --git:\n{changed}"
        )
    log_entry = _git(model_dir, "log", "-1", "--format=%H%n%cn <%ce>%n%cI")
    commit, committer, date = log_entry.splitlines()
    remote = _remote_of(model_dir)
    return {"gitRemote": remote, "gitCommit": commit, "gitCommitter": committer, "gitCommitDate": date}


def _remote_of(model_dir: Path) -> str:
    branch = _git(model_dir, "rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
    url = _git(model_dir, "remote", "get-url", branch.partition("/")[0])
    print(f"Using remote URL '{url}' from upstream branch '{branch}'", flush=True)
    return url


def _git(folder: Path, *words: str) -> str:
    if (git := shutil.which("git")) is None:
        raise Failure("there is no 'git' on this machine: install it or leave out --git")
    done = subprocess.run(  # noqa: S603
        [git, *words], cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        raise Failure(f"'git {words[0]}' in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()
