"""A fold that makes another state of the same log says so by its version."""

import json

from tests.history import folds


def test_a_fold_that_differs_has_another_version():
    written, current = json.loads(folds.FILE.read_text()), folds.current()
    for owner, now in current.items():
        before = written[owner]
        changed = [what for what in now if now[what] != before[what]]
        assert not changed or now["version"] > before["version"], (
            f"{', '.join(changed)} of {owner} changed: raise fold_version in its Rules above "
            f"{before['version']}, then python -m tests.history.folds"
        )
    assert current == written, "python -m tests.history.folds"
