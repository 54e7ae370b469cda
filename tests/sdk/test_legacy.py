"""Classes of 0.25's trainers, as scripts name, subclass and ask them."""

import pytest

import determined as det

CONFIG = {
    "entrypoint": "a:B",
    "searcher": {"metric": "loss", "name": "single", "max_length": {"batches": 1}},
    "resources": {"slots_per_trial": 2, "native_parallel": True},
    "checkpoint_storage": {"type": "shared_fs", "host_path": "/x"},
    "min_validation_period": {"epochs": 2},
    "min_checkpoint_period": {},
    "scheduling_unit": 50,
    "records_per_epoch": 8,
    "optimizations": {"average_training_metrics": True},
    "reproducibility": {"experiment_seed": 5},
    "profiling": {"enabled": True, "begin_on_batch": 2, "end_after_batch": 9, "sync_timings": False},
    "debug": True,
}
ANSWERS = {
    "average_training_metrics_enabled": (True, KeyError),
    "debug_enabled": (True, False),
    "experiment_seed": (5, 0),
    "get_checkpoint_storage": ({"type": "shared_fs", "host_path": "/x"}, {}),
    "get_entrypoint": ("a:B", KeyError),
    "get_min_checkpoint_period": ({}, {}),
    "get_min_validation_period": ({"epochs": 2}, {}),
    "get_optimizations_config": ({"average_training_metrics": True}, {}),
    "get_records_per_epoch": (8, None),
    "get_searcher_metric": ("loss", AssertionError),
    "native_parallel_enabled": (True, KeyError),
    "profiling_enabled": (True, False),
    "profiling_interval": ((2, 9), (0, 0)),
    "profiling_sync_timings": (False, True),
    "scheduling_unit": (50, 100),
    "slots_per_trial": (2, KeyError),
}
"""What 0.25.0 answers to a whole configuration and to an empty one."""


@pytest.mark.parametrize(("name", "answers"), ANSWERS.items())
def test_what_a_configuration_answers(name, answers):
    for config, answer in zip((CONFIG, {}), answers, strict=True):
        ask = getattr(det.ExperimentConfig(config), name)
        if isinstance(answer, type):
            with pytest.raises(answer):
                ask()
        else:
            assert ask() == answer


def test_a_context_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    class Own(det.TrialContext):
        pass

    config = {"hyperparameters": {"lr": {"type": "double", "minval": 1, "maxval": 2}}, "data": {"path": "/d"}}
    context = Own.from_config(config)
    assert type(context) is Own
    assert 1 <= context.get_hparam("lr") <= 2
    assert context.get_hparams().keys() == {"lr"}
    assert context.get_data_config() == {"path": "/d"}
    assert context.get_experiment_config().scheduling_unit() == 100
    assert (context.get_experiment_id(), context.get_trial_id(), context.get_initial_batch()) == (1, 1, 0)
    assert context.get_trial_seed() == context.env.experiment_config.experiment_seed()
    with pytest.raises(ValueError, match="there are: lr"):
        context.get_hparam("width")
    context.set_stop_requested(True)
    assert context.get_stop_requested()
    with pytest.raises(AssertionError):
        context.set_stop_requested(1)


def test_a_controller_is_to_be_defined():
    class Own(det.TrialController):
        def run(self):
            return "ran"

    assert Own(None, None).run() == "ran"
    assert not Own.supports_mixed_precision()
    with pytest.raises(NotImplementedError, match="Own"):
        Own.from_trial(None, None, None)
    with pytest.raises(NotImplementedError, match="TrialController"):
        det.TrialController(None, None).run()
