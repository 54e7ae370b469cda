"""A fold that makes another state of the same log says so by its version."""

import json

from tests.history import folds


def test_a_fold_that_differs_has_another_version():
    written, found = json.loads(folds.FILE.read_text()), folds.found()
    for owner, now in found.items():
        known = written[owner]
        changed = [what for what in now if now[what] != known[what]]
        assert not changed or now["version"] > known["version"], (
            f"{', '.join(changed)} of {owner} changed: raise fold_version in its Rules above "
            f"{known['version']}, then python -m tests.history.folds"
        )
    assert found == written, "python -m tests.history.folds"
