import pytest

from determined.core._checkpoint import merge_metadata, merge_resources


@pytest.mark.parametrize(
    ("resources", "merged", "conflicts"),
    [
        ([{"file0": 0}, {"file1": 0}], {"file0": 0, "file1": 0}, {}),
        ([{"file0": 0}, {"file0": 0}], {"file0": 0}, {"file0": [0, 1]}),
        ([{"dir1/": 0}, {"dir1/": 0}], {"dir1/": 0}, {}),
        ([{"file1/": 0}, {"file1": 0}], {"file1/": 0, "file1": 0}, {"file1": [0, 1]}),
        ([{"dir1/file1": 0}, {"file1": 0}], {"dir1/file1": 0, "file1": 0}, {}),
        (
            [{"dir1/file1": 0}, {"dir1/file1/": 0}],
            {"dir1/file1": 0, "dir1/file1/": 0},
            {"dir1/file1": [0, 1]},
        ),
    ],
)
def test_merge_resources(resources, merged, conflicts):
    assert merge_resources(resources) == (merged, conflicts)


@pytest.mark.parametrize(
    ("metadata", "merged", "conflicts"),
    [
        ([{"a": 0}, {"b": 0}], {"a": 0, "b": 0}, {}),
        ([{"a": 0}, {"a": 0}], {"a": 0}, {}),
        ([{"a": 1, "b": 0}, {"a": 0}], {"a": 1, "b": 0}, {"/a": [0, 1]}),
        ([{"a": {"c": 1}}, {"a": {"d": 2}}], {"a": {"c": 1, "d": 2}}, {}),
        ([{"a": {"c": 1}}, {"a": 2}], {"a": {"c": 1}}, {"/a": [0, 1]}),
        ([{"a": {"c": 1}}, {"a": [2]}], {"a": {"c": 1}}, {"/a": [0, 1]}),
        ([{"a": {"c": 1}}, {"a": {"c": 2}}], {"a": {"c": 1}}, {"/a/c": [0, 1]}),
        ([{"a": {"c": {"d": 1}}}, {"a": {"d": 2}}], {"a": {"c": {"d": 1}, "d": 2}}, {}),
        (
            [
                {"a": 1, "d": {"a": 1, "d": {"a": 1}}},
                {"b": 2, "d": {"b": 2, "d": {"a": 1}}},
                {"c": 3, "d": {"c": 3, "d": {"a": 1}}},
            ],
            {"a": 1, "b": 2, "c": 3, "d": {"a": 1, "b": 2, "c": 3, "d": {"a": 1}}},
            {},
        ),
        (
            [
                {"a": 1, "d": {"a": 1, "d": {"a": 1}}},
                {"b": 2, "d": {"b": 2, "d": {"b": 1, "c": 1}}},
                {"c": 3, "d": {"b": 3, "d": {"c": 2, "a": 2}}},
            ],
            {"a": 1, "b": 2, "c": 3, "d": {"a": 1, "b": 2, "d": {"a": 1, "b": 1, "c": 1}}},
            {"/d/b": [1, 2], "/d/d/c": [1, 2], "/d/d/a": [0, 2]},
        ),
    ],
)
def test_merge_metadata(metadata, merged, conflicts):
    before = repr(metadata)
    assert merge_metadata(metadata) == (merged, conflicts)
    assert repr(metadata) == before
