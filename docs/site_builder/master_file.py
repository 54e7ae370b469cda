"""The page on the configuration file of a 0.25 master: each of its settings, and what becomes of it here."""

from __future__ import annotations

from services.local.master_names import SUPPORTED, UNUSED

INTRODUCTION = """# The configuration of a 0.25 master

`det deploy local cluster-up --master-config-path master.yaml` starts a cluster by the file that a master of
Determined 0.25 is set up with. What it asks for and is not there is named at the start, with the reason,
and the cluster starts without it, as is a name that nothing here is like. A name that looks like a slip of
another, and a value that makes no sense, start nothing.
On several hosts the same things are said by [settings of processes](settings.md), and pools by
[a file](../scheduling.md#pools).

The options of the command come before the file. `[]` stands for each pool. `tests/local/test_master_file.py`
holds every row.
"""


def page() -> str:
    """All settings as Markdown."""
    lines = [INTRODUCTION]
    for title, about, names in (
        ("What is supported", "what it says", SUPPORTED),
        ("What has no effect", "why, and what has instead", UNUSED),
    ):
        lines += [f"## {title}\n", f"{len(names)} settings.\n", f"| setting | {about} |", "|---|---|"]
        lines += [f"| `{name}` | {text} |" for name, text in names.items()]
        lines.append("")
    return "\n".join(lines)
