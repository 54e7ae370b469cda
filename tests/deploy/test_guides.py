"""The commands of the guides that write keys: they run as printed, and write what the guides then name."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
WRITES_KEYS = re.compile(r"^python -m (services\.local\.stack .*)$", re.MULTILINE)
NAMED = re.compile(
    r"(?:keys/)?((?:broker|services|workers?)/[\w-]+\.(?:creds|json|conf)|workers?/sealing-key)"
)


@pytest.mark.parametrize("name", ["workers-behind-nat", "three-brokers-by-hand", "server-by-hand"])
def test_what_a_guide_copies_to_hosts_is_what_its_command_has_written(name, tmp_path):
    page = (GUIDES / f"{name}.md").read_text()
    (command,) = WRITES_KEYS.findall(page.replace("\\\n", " "))
    words = shlex.split(command)
    words[words.index("--store") + 1] = str(tmp_path / "store")
    for _ in ("written", "and once more, as for a worker that comes later"):
        subprocess.run([sys.executable, "-m", *words], check=True, cwd=tmp_path)
    named = set(NAMED.findall(page))
    assert named
    assert [file for file in sorted(named) if not (tmp_path / "keys" / file).is_file()] == []
