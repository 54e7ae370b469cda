"""A fold that makes another state of the same log says so by its version."""

import json
from pathlib import Path

import msgspec
import pytest

from services.checkpoints.domain.state import Model
from services.metrics.domain.state import Refusal
from services.webhooks.domain.state import Delivery
from tests.history import folds

FOLDER = Path(__file__).parents[2]


def test_a_fold_that_differs_has_another_version():
    written, current = json.loads(folds.FILE.read_text()), folds.current()
    for owner, now in current.items():
        changed = folds.differences(written[owner], now)
        assert not changed or now["version"] > written[owner]["version"], (
            f"{', '.join(changed)} of {owner} changed: python -m tests.history.folds raises its fold_version"
        )
    assert current == written, "python -m tests.history.folds"


def test_every_service_has_a_version_that_can_be_raised():
    for owner in folds.current():
        source = (FOLDER / "services" / owner / "app.py").read_text()
        assert "    fold_version=41,\n" in folds.raised(source, 40), owner


def test_rules_without_a_version_are_not_changed():
    with pytest.raises(ValueError, match="no line `    fold_version=N,`"):
        folds.raised("RULES = Rules()", 1)


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
