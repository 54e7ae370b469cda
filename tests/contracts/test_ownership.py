"""A command is declared with its owner, and two of one owner never share a subject."""

import msgspec
import pytest

from det_contracts.commands import OWNER_OF
from det_contracts.ownership import command


def declare(name, **options):
    return command("searcher")(msgspec.defstruct(name, [], frozen=True, **options))


def test_a_command_without_a_tag_is_refused():
    with pytest.raises(ValueError, match="Nameless has no tag, which names a command"):
        declare("Nameless")


def test_a_command_with_the_tag_of_another_is_refused():
    with pytest.raises(ValueError, match="Another has the tag 'kill_trial' of KillTrial: give it another"):
        declare("Another", tag="kill_trial")
    assert "Another" not in {record.__name__ for record in OWNER_OF}
