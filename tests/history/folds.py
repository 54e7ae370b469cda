"""What each service's fold is, in short: when that changes, its version has to.

    python -m tests.history.folds

raises `fold_version` in the rules of each service whose fold is another than that in `folds.json`, and writes
`folds.json`. A database of another version is not read; the state is folded from the log.
"""

import hashlib
import json
import re
import typing
from pathlib import Path

import msgspec

from det_contracts import subjects
from services.kit.rules import dump, record_types
from tests.history.facts import ALL, fold
from tests.history.recording import read

FILE = Path(__file__).parent / "folds.json"
HISTORY = Path(__file__).parent / "2026-11.jsonl.gz"


def folded(owner):
    """The names of the events that change a service's state."""
    kinds = ALL[owner].evolve.kinds
    return sorted(f"{_module(kind.__module__).rpartition('.')[2]}.{kind.__name__}" for kind in kinds)


def _module(name):
    """A module's name, without the part of a package of events: which of them holds a record is no matter."""
    return re.sub(r"(det_contracts\.events\.\w+)\.[a-z_]+", r"\1", name)


def shapes(kind, fields_of):
    """The fields of a record, and of all records in it, by the name that they are stored with."""
    for argument in typing.get_args(kind):
        shapes(argument, fields_of)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or kind.__qualname__ in fields_of:
        return fields_of
    hints = typing.get_type_hints(kind)
    stored = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
    fields_of[kind.__qualname__] = {name: _module(str(hints[field])) for name, field in stored}
    for hint in hints.values():
        shapes(hint, fields_of)
    return fields_of


def records(rules):
    """Every record of a state, with its fields."""
    fields_of = {}
    for _, record in record_types(rules.state).values():
        shapes(record, fields_of)
    return fields_of


def digest(value):
    """Twelve letters that are others for another value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def current():
    """By service, its version and what it stands for."""
    _, streams = read(HISTORY)
    control = {subjects.CONTROL: streams[subjects.CONTROL]}
    return {
        owner: {
            "version": rules.fold_version,
            "events": digest(folded(owner)),
            "records": digest(records(rules)),
            "state after 2026-11.jsonl.gz": digest(dump(fold(rules, control))),
        }
        for owner, rules in ALL.items()
        if owner != "metrics"
    }


def differences(written, now):
    """What of a service's fold is another than what was written, without its version."""
    return [what for what in now if what != "version" and now[what] != written.get(what)]


def raised(source, version):
    """The source of a service's rules, with a fold version that is higher than the one written."""
    text, count = re.subn(
        r"^    fold_version=\d+,$", f"    fold_version={version + 1},", source, flags=re.MULTILINE
    )
    if count != 1:
        raise ValueError("Rules(...) has no line `    fold_version=N,` of its own")
    return text


def write():
    """Raise the versions that have to be higher, and write what the folds are now."""
    written, now = json.loads(FILE.read_text()), current()
    for owner, fold_of_owner in now.items():
        before = written.get(owner)
        if before and differences(before, fold_of_owner) and fold_of_owner["version"] <= before["version"]:
            rules = Path(__file__).parents[2] / "services" / owner / "app.py"
            rules.write_text(raised(rules.read_text(), before["version"]))
            fold_of_owner["version"] = before["version"] + 1
            print(f"{rules}: fold_version is {fold_of_owner['version']}")
    FILE.write_text(json.dumps(now, indent=2) + "\n")


if __name__ == "__main__":
    write()
