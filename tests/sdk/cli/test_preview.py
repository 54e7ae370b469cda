"""`det preview-search`."""

from determined.cli.preview import in_words


def test_a_search_is_described(det, master, tmp_path):
    master.answer("POST", "/searcher/preview", {"results": {"16 V": 2, "16 V 64 V": 1}})
    config = tmp_path / "search.yaml"
    config.write_text("searcher: {name: adaptive_asha, max_length: 64}\n")
    done = det("preview-search", config)
    assert done.status == 0
    assert "This search will create a total of 3 trial(s)." in done.out
    assert "adaptive_asha" in done.out
    assert "1 x train for 16, 1 x validation, 1 x train for 64, 1 x validation" in done.out
    assert master.calls[-1].json == {"searcher": {"name": "adaptive_asha", "max_length": 64}}


def test_nothing_to_train_is_said():
    assert in_words("") == "nothing to train"
    assert in_words("16 16 V V") == "2 x train for 16, 2 x validation"


def test_a_file_that_is_no_configuration_is_refused(det, master, tmp_path):
    config = tmp_path / "search.yaml"
    config.write_text("[1, 2]\n")
    done = det("preview-search", config)
    assert done.status == 1
    assert "a configuration is a map of fields" in done.err
    assert det("preview-search", tmp_path / "none.yaml").status == 2
