"""What a script imports when it begins is told by its text, without running any of it."""

import sys

import pytest

from worker.warm.inside import first_imports


def find_imports(folder, main="train.py", *arguments, is_module=False, without=()):
    script = {"folder": str(folder), "main": main, "is_module": is_module, "arguments": arguments}
    return first_imports.find(script, without)


def write(folder, texts):
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import numpy as np, torch.nn\nfrom torch import nn", ["numpy", "torch.nn", "torch", "torch:nn"]),
        ("try:\n    import one\nexcept ImportError:\n    import two", ["one"]),
        ("if __name__ == '__main__':\n    import one\nif TYPE_CHECKING:\n    import two", ["one"]),
        ("def f():\n    import one\nclass A:\n    def f(self):\n        import two", []),
        ("with quiet():\n    from one import *", ["one"]),
        ("from . import one\nfrom .two import three", []),
        ("import torch\ntorch.optim.SGD([])", ["torch", "torch.optim", "torch._dynamo"]),
        (
            "import torch\nfrom torch.optim import SGD",
            ["torch", "torch.optim", "torch.optim:SGD", "torch._dynamo"],
        ),
        ("from torch import optim", ["torch", "torch:optim", "torch._dynamo"]),
        ("import one\nprint('torch.optim')", ["one"]),
        ("import determined as det", ["determined", *first_imports.LOADED_LATER["determined"]]),
        ("import\n", []),
        ("raise SystemExit('run')", []),
        ("(" * 5000, []),
    ],
)
def test_what_a_script_begins_with(tmp_path, text, names):
    write(tmp_path, {"train": text})
    assert find_imports(tmp_path) == names


def test_the_imports_of_its_own_modules_count_and_they_do_not(tmp_path):
    write(
        tmp_path,
        {"train": "import first\nfrom own import model, last", "first": "import one", "last": "import five"},
    )
    write(tmp_path, {"own/__init__": "import two\nfrom .parts import layer", "own/parts": "import three"})
    write(tmp_path, {"own/model": "import four\nimport first\nfrom . import parts"})
    assert find_imports(tmp_path) == ["one", "two", "three", "four"]
    assert find_imports(tmp_path, without=["two", "four"]) == ["one", "three"]


def test_programs_of_a_launcher(tmp_path):
    write(tmp_path, {"model_def": "import one\nclass Trial: pass", "pack/train": "import two"})
    assert find_imports(tmp_path, "model_def", is_module=True) == ["one"]
    assert find_imports(tmp_path, "pack.train", is_module=True) == ["two"]
    launched = find_imports(
        tmp_path, "determined.launch.torch_distributed", "python3", "pack/train.py", is_module=True
    )
    assert "two" in launched
    assert any(name.startswith("determined.launch") for name in launched)
    assert "determined.launch.torch_distributed" not in launched
    trial = find_imports(tmp_path, "determined.exec.harness", "model_def:Trial", is_module=True)
    assert "one" in trial
    assert find_imports(tmp_path, "no.such", "nothing:Trial", "--x=a:b", "gone.py", is_module=True) == []


def test_a_package_that_is_run(tmp_path):
    write(
        tmp_path,
        {"pack/__init__": "import one", "pack/__main__": "from . import work", "pack/work": "import two"},
    )
    assert find_imports(tmp_path, "pack", is_module=True) == ["one", "two"]


def test_nothing_is_read_for_ever(tmp_path, monkeypatch):
    write(tmp_path, {"train": "import other\nimport one", "other": "import train\nimport two"})
    assert find_imports(tmp_path) == ["two", "one"]
    (tmp_path / "large.py").write_text("import three\n" + "x = 1\n" * 100_000)
    write(tmp_path, {"train": "import large"})
    assert find_imports(tmp_path) == []
    monkeypatch.setattr(first_imports, "MAX_FILES", 1)
    write(tmp_path, {"train": "import other\nimport one"})
    assert find_imports(tmp_path) == ["one"]


def test_nothing_of_it_stays(tmp_path):
    write(tmp_path, {"train": "import tests.fixtures.local_cluster"})
    before = set(sys.modules)
    assert find_imports(tmp_path) == ["tests.fixtures.local_cluster"]
    assert set(sys.modules) == before
    assert first_imports.find(None, ()) == []
