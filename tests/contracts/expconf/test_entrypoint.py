"""Forms of an entrypoint."""

import pytest

from det_contracts.expconf import BadEntrypoint
from det_contracts.expconf import entrypoint_command as command


@pytest.mark.parametrize("slots", [0, 1, 4])
def test_a_string_goes_to_the_shell(slots):
    assert command(" FOO=1 python3 train.py && echo $X ", slots=slots)[:2] == ["sh", "-c"]


def test_a_list_is_run_as_it_is():
    argv = ["python3", "a b.py", "--", "it's", "$HOME", "m:T"]
    assert command(argv, slots=1) == argv


def test_a_list_that_looks_like_a_class_is_no_class():
    assert command(["model_def:Trial"], slots=1) == ["model_def:Trial"]


@pytest.mark.parametrize(
    "name", ["mod:Outer.Inner", "my-mod:Cls", "a:b c", "http://x:y", "model_def:Trial\n"]
)
def test_what_is_no_class_goes_to_the_shell(name):
    assert command(name, slots=1) == ["sh", "-c", name]


@pytest.mark.parametrize("slots", [0, 1])
def test_a_class_on_one_slot_is_trained_directly(slots):
    assert command("pkg.mod:Cls", slots=slots) == ["python3", "-m", "determined.exec.harness", "pkg.mod:Cls"]


@pytest.mark.parametrize(("slots", "nodes"), [(2, 1), (1, 2)])
def test_a_class_on_more_gets_a_launcher(slots, nodes):
    assert command("m:T", slots=slots, nodes=nodes) == [
        "python3",
        "-m",
        "determined.launch.torch_distributed",
        "--trial",
        "m:T",
    ]


@pytest.mark.parametrize("wrong", [None, 3, [], ["a", 1], {"a": 1}])
def test_anything_else_is_refused(wrong):
    with pytest.raises(BadEntrypoint, match="invalid entrypoint in experiment config"):
        command(wrong, slots=1)
