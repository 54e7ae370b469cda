"""The searches of the examples: somebody who runs one sees a trial that trains to the end."""

from pathlib import Path

import pytest
import yaml

from det_contracts import expconf
from det_contracts.queries import PreviewSearch
from services.searcher.preview import preview_search

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNGS = ("adaptive_asha", "async_halving")
STORAGE = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}}


def searches():
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        config = yaml.safe_load(path.read_text())
        if config.get("searcher", {}).get("name") in RUNGS:
            yield pytest.param(config, id=f"{path.parent.name}/{path.name}")


@pytest.mark.parametrize("config", [*searches()])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_some_trial_trains_to_the_longest_length(config, seed):
    complete = expconf.complete(config, defaults=[STORAGE], seed=seed, name="x")
    longest = complete["searcher"]["max_length"]
    longest = longest if isinstance(longest, int) else next(iter(longest.values()))
    rows = preview_search(PreviewSearch(config=complete))
    assert max(max(row["lengths"]) for row in rows) == longest
