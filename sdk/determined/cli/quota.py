"""`det quota`: limits of slots, jobs and storage for users, groups and workspaces (our addition)."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal
from typing import Any

from determined.cli import formatting, output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg, one_of
from determined.cli.task_verbs import workspace_id
from determined.cli.user_group import group_id, user_id
from determined.transport.pages import read_all
from determined.transport.rest import Session

Object = dict[str, Any]
PATH = "/api/v1/quotas"
LIFTED = "none"
_LIMITS = {"slots": "slots", "jobs": "jobs", "storage": "storageBytes"}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGTP]?i?)B?", re.IGNORECASE)
_STEPS = " kmgtp"


def size(text: str) -> int:
    """Parse a size such as `500GB`, `1.5TiB` or `1024` into bytes. Raises `Failure`."""
    size_match = _SIZE.fullmatch(text.strip())
    if size_match is None:
        raise Failure(
            f"'{text}' is not a size: give bytes, or a number with kB, MB, GB, TB, KiB, MiB, GiB, TiB"
        )
    unit = size_match[2].lower()
    base = 1024 if unit.endswith("i") else 1000
    return int(Decimal(size_match[1]) * base ** _STEPS.index(unit[:1] or " "))


def _limit(name: str, text: str) -> int | None:
    if text == LIFTED:
        return None
    if name == "storage":
        return size(text)
    if not text.isdecimal():
        raise Failure(f"--{name} takes a number, or '{LIFTED}' for no limit, not '{text}'")
    return int(text)


def _holder(session: Session, args: argparse.Namespace) -> str:
    if args.user:
        return f"user-{user_id(session, args.user)}"
    if args.group:
        return f"group-{group_id(session, args.group)}"
    return f"workspace-{workspace_id(session, args.workspace)}"


def _all_quotas(session: Session) -> list[Object]:
    return read_all(session, PATH, "quotas")


def set_quota(session: Session, args: argparse.Namespace) -> None:
    """Set limits of a holder. Omitted limits are unchanged."""
    limits = {
        _LIMITS[name]: _limit(name, text) for name in _LIMITS if (text := getattr(args, name)) is not None
    }
    if not limits:
        raise Failure("give at least one of --slots, --jobs and --storage")
    holder = _holder(session, args)
    present = next((existing for existing in _all_quotas(session) if existing["holder"] == holder), {})
    wanted = {field: present.get(field) for field in _LIMITS.values()} | limits
    quota = session.put(f"{PATH}/{holder}", wanted)["quota"]
    if quota is None:
        print("There is no limit anymore.")
    else:
        _print([quota])


def list_quotas(session: Session, args: argparse.Namespace) -> None:
    """List the quotas that apply to the user, or all quotas for administrators."""
    quotas = _all_quotas(session)
    if args.json:
        output.print_json(quotas)
    else:
        _print(quotas)


def delete(session: Session, args: argparse.Namespace) -> None:
    """Remove the quota of a holder."""
    holder = _holder(session, args)
    session.delete(f"{PATH}/{holder}")
    print(f"{holder} no longer has a quota.")


def _print(quotas: list[Object]) -> None:
    rows = [
        [
            quota["kind"],
            quota["name"],
            _of(quota["used"]["slots"], quota["slots"]),
            _of(quota["used"]["jobs"], quota["jobs"]),
            _of(quota["used"]["storageBytes"], quota["storageBytes"], formatting.size),
        ]
        for quota in quotas
    ]
    output.table(["Kind", "Name", "Slots", "Jobs", "Storage"], rows)


def _of(used: int | None, limit: int | None, shown: Any = str) -> str:
    had = "?" if used is None else shown(used)
    return f"{had} of {shown(limit)}" if limit is not None else f"{had}, no limit"


_WHO = one_of(
    arg("--user", metavar="NAME", help="quota of a user"),
    arg("--group", metavar="NAME", help="quota shared by the members of a group"),
    arg("-w", "--workspace", metavar="NAME", help="quota shared by everyone who works in a workspace"),
    required=True,
)
NOUN = Noun(
    "quota",
    "limit the resources of users, groups and workspaces",
    (
        Verb(
            "set",
            "set a quota",
            set_quota,
            (
                _WHO,
                arg(
                    "--slots",
                    metavar="N",
                    help="slots held at the same time; 'none' removes a limit, omitted limits are unchanged",
                ),
                arg("--jobs", metavar="N", help="number of experiments and tasks that have not ended"),
                arg("--storage", metavar="SIZE", help="size of checkpoints, such as 500GB or 2TiB"),
            ),
        ),
        Verb(
            "list ls",
            "list the quotas that apply to you, and their use",
            list_quotas,
            (arg("--json", action="store_true", help="print as JSON"),),
        ),
        Verb("delete", "delete a quota", delete, (_WHO,)),
    ),
    default="list",
)
