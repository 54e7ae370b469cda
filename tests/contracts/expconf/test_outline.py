"""The fields of the configuration as editors are told of them."""

from det_contracts import expconf
from det_contracts.expconf.experiment import EXPERIMENT

FIELDS = {field.path: field for field in expconf.outline()}


def test_every_field_is_listed_once_with_its_kind_and_default():
    assert len(FIELDS) == len(expconf.outline())
    gone = {"internal", "data_layer", "tensorboard_storage"}
    assert {path for path in FIELDS if "." not in path and "[" not in path} == set(EXPERIMENT.fields) - gone
    assert (FIELDS["max_restarts"].kind, FIELDS["max_restarts"].default) == ("whole number", 5)
    assert FIELDS["checkpoint_policy"].words == ("best", "all", "none")
    assert FIELDS["searcher"].required
    assert not FIELDS["description"].required


def test_of_maps_whose_fields_depend_on_a_word_each_field_names_the_words_it_goes_with():
    assert {"single", "adaptive_asha", "grid"} <= set(FIELDS["searcher.name"].words)
    assert not {"sync_halving", "adaptive"} & set(FIELDS["searcher.name"].words)
    assert FIELDS["searcher.mode"].only == ("adaptive_asha",)
    assert {"random", "tpe"} <= set(FIELDS["searcher.max_trials"].only)
    assert FIELDS["searcher.metric"].only == ()
    assert FIELDS["hyperparameters.*.base"].only == ("log",)
    assert "host_path" in FIELDS["bind_mounts[].host_path"].path


def test_listed_defaults_apply_when_a_field_is_absent():
    text = {"entrypoint": "x", "searcher": {"name": "single", "metric": "loss", "max_length": 1}}
    storage = {"checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp"}}
    whole = expconf.complete(text, defaults=[storage], seed=1, name="n")
    for path, field in FIELDS.items():
        if "." not in path and field.kind in ("whole number", "word", "true or false"):
            assert whole[path] == field.default, path
