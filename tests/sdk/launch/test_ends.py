"""Which rank failed first, by the notes of the wrappers and by what the launcher saw."""

import pytest

from determined.launch import _ends


@pytest.mark.parametrize(
    ("noted", "codes", "first"),
    [
        ([(1, 137), (0, 1)], {0: 1}, (1, 137)),
        ([(2, 0), (1, 3), (0, 143)], {1: 3}, (1, 3)),
        # The wrapper of rank 1 was killed itself.
        ([(0, 1)], {0: 1, 1: 137}, (1, 137)),
        ([], {1: 5, 0: 1}, (1, 5)),
        # The wrapper of rank 1 was still starting when the launcher stopped it.
        ([(0, 137)], {1: 143, 0: 137}, (0, 137)),
        ([], {1: 143, 0: 126}, (0, 126)),
        # Rank 1 did not end when it was asked to, and was killed.
        ([(0, 3), (1, _ends.TOLD_TO_END)], {1: 137, 0: 3}, (0, 3)),
        ([(0, _ends.TOLD_TO_END), (0, 1)], {0: 1, 1: 137}, (1, 137)),
        # All processes ended well, but a wrapper did not.
        ([(0, 0), (1, 0)], {1: 1}, (1, 1)),
    ],
)
def test_what_failed_first(tmp_path, noted, codes, first):
    notes = tmp_path / "ends"
    _ends.begin(notes)
    for rank, code in noted:
        _ends.note(str(notes), rank, code)
    assert _ends.first_failure(notes, codes) == first


@pytest.mark.parametrize(
    ("noted", "first"),
    [
        ([], None),
        ([(0, 0), (1, 3), (0, 143)], (1, 3)),
        # The launcher stopped rank 0, because of a rank on another node.
        ([(0, _ends.TOLD_TO_END), (0, 143)], None),
        ([(0, 143)], None),
        ([(0, _ends.TOLD_TO_END), (1, 137), (0, 143)], (1, 137)),
    ],
)
def test_what_failed_by_itself(tmp_path, noted, first):
    notes = tmp_path / "ends"
    _ends.begin(notes)
    for rank, code in noted:
        _ends.note(str(notes), rank, code)
    assert _ends.first_cause(notes) == first


def test_without_a_launcher_that_asks_nothing_is_noted(tmp_path):
    _ends.note("", 1, 1)
    _ends.note(str(tmp_path / "gone" / "ends"), 1, 1)
    # As a wrapper does that ends after its launcher has removed the notes.
    _ends.note(str(tmp_path / "ends"), 1, 1)
    assert list(tmp_path.iterdir()) == []
