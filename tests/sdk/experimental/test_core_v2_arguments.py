"""Wrong arguments of `core_v2.init` are named at the call, before anything is sent."""

import pytest

from determined.core import PreemptMode
from determined.experimental import core_v2
from determined.experimental.core_v2 import DefaultConfig, UnmanagedConfig

FINE = DefaultConfig(name="fine")
CLIENT_S = {"defaults": FINE, "client": "http://localhost:8080"}
LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"defaults": {"name": "x"}}, "defaults must be a core_v2.DefaultConfig, or None, not {'name': 'x'}"),
        ({"defaults": DefaultConfig}, "defaults must be a core_v2.DefaultConfig, or None"),
        ({"defaults": DefaultConfig(name=3)}, "defaults.name must be text (str), or None, not 3 (int)"),
        ({"defaults": DefaultConfig(description=b"x")}, "defaults.description must be text"),
        ({"defaults": DefaultConfig(hparams=[1])}, "defaults.hparams must be a dict"),
        ({"defaults": DefaultConfig(hparams={1: 1})}, "a name in defaults.hparams must be text"),
        ({"defaults": DefaultConfig(hparams={"f": print})}, "defaults.hparams['f'] must be a value"),
        ({"defaults": DefaultConfig(hparams={"f": LOOP})}, "defaults.hparams['f'] must be a value"),
        ({"defaults": DefaultConfig(data="x")}, "defaults.data must be a dict"),
        ({"defaults": DefaultConfig(searcher="single")}, "defaults.searcher must be a dict"),
        ({"defaults": DefaultConfig(labels="one")}, "defaults.labels must be a list of texts"),
        ({"defaults": DefaultConfig(labels=["a", 2])}, "defaults.labels[1] must be text (str), not 2 (int)"),
        ({"defaults": DefaultConfig(checkpoint_storage=3)}, "checkpoint_storage must be a str"),
        ({"defaults": FINE, "checkpoint_storage": 3}, "checkpoint_storage must be a str"),
        ({"defaults": FINE, "unmanaged": "w"}, "unmanaged must be a core_v2.UnmanagedConfig, or None"),
        ({"defaults": FINE, "unmanaged": UnmanagedConfig(workspace=1)}, "unmanaged.workspace must be text"),
        ({"defaults": FINE, "unmanaged": UnmanagedConfig(project=[])}, "unmanaged.project must be text"),
        (
            {"defaults": FINE, "unmanaged": UnmanagedConfig(external_experiment_id=7)},
            "unmanaged.external_experiment_id must be text (str), or None, not 7 (int)",
        ),
        (
            {"defaults": FINE, "unmanaged": UnmanagedConfig(external_trial_id=7)},
            "unmanaged.external_trial_id must be text (str), or None, not 7 (int)",
        ),
        (CLIENT_S, "client must be a Determined object"),
        ({"defaults": FINE, "distributed": 2}, "distributed must be a core.DistributedContext"),
        ({"defaults": FINE, "preempt_mode": "x"}, "preempt_mode must be one of PreemptMode.WorkersAskChief"),
        ({"defaults": FINE, "tensorboard_mode": "x"}, "tensorboard_mode must be one of TensorboardMode.AUTO"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(monkeypatch, client_home, arguments, named):
    def signs_in(client):
        pytest.fail("the cluster was asked")

    monkeypatch.setattr(core_v2, "_signed_in", signs_in)
    for call in (core_v2.init, core_v2.init_context):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(**arguments)
        assert str(caught.value).startswith(named)
    assert core_v2.train is None


@pytest.mark.parametrize("mode", [PreemptMode.ChiefOnly, "WORKERS_ASK_MASTER"])
def test_right_ones_are_taken(monkeypatch, tmp_path, client_home, mode):
    class Registered(Exception):
        """Raised in the place of registering."""

    def registers(session, defaults, unmanaged):
        raise Registered

    monkeypatch.setattr(core_v2, "_signed_in", lambda client: None)
    monkeypatch.setattr(core_v2, "registered", registers)
    full = DefaultConfig(
        "a", {"lr": 0.1, "n": [1, {"b": None}]}, {}, "d", ["x"], str(tmp_path), {"name": "single"}
    )
    with pytest.raises(Registered):
        core_v2.init_context(defaults=full, unmanaged=UnmanagedConfig("w", "p", "e", "t"), preempt_mode=mode)
