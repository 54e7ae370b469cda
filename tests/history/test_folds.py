"""A fold that makes another state of the same log says so by its version."""

import json

import msgspec
import pytest

from services.checkpoints.domain.state import Model
from services.metrics.domain.state import Refusal
from services.webhooks.domain.state import Delivery
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


@pytest.mark.parametrize("kind", [Model, Delivery, Refusal])
def test_a_field_keeps_the_name_that_it_is_stored_with(kind):
    """Whatever it is called in the code: databases and the release before this one know the first name."""
    assert set(kind.__struct_encode_fields__) - set(kind.__struct_fields__) == {"told"}
    assert "told" in folds.shapes(kind, {})[kind.__name__]


def test_what_was_stored_under_the_first_name_is_read():
    stored = b'{"position":4,"reason":"no loss","number":2,"run":1,"told":"a report has no loss"}'
    refusal = msgspec.json.decode(stored, type=Refusal)
    assert refusal == Refusal(4, "no loss", 2, 1, message="a report has no loss")
    assert msgspec.json.encode(msgspec.structs.replace(refusal, message="none")) == stored.replace(
        b"a report has no loss", b"none"
    )
