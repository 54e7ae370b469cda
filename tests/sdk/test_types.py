"""Type checkers know the public API: users' scripts are accepted, and what is wrong in one is found."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = (
    *("core_api/1_metrics", "core_api/2_checkpoints", "core_api/3_search", "core_api/4_distributed"),
    *("core_api_mnist/model_def_adaptive", "core_api_mnist/model_def_checkpoints"),
    *("custom_search/remote", "custom_search/search", "keras_digits/model_def", "pbt_digits/train"),
    *("pytorch_mnist/model_def", "pytorch_mnist/train", "transformers_digits/train"),
    "lightning_digits/train",
)
OTHERS = ("keras", "numpy", "sklearn", "sklearn/datasets", "torch", "transformers", "lightning")
"""Libraries of the examples, whose own types are not what is tried here, and take long to read."""
CLIENT = """\
from determined.experimental import client, core_v2

experiment = client.create_experiment({"name": "digits"}, ".")
if experiment.wait() is client.ExperimentState.COMPLETED:
    checkpoint = experiment.top_checkpoint(sort_by="accuracy", smaller_is_better=False)
    folder: str = checkpoint.download(mode=client.DownloadMode.MASTER)
for line in client.get_trial(7).logs(tail=20, min_level="WARNING"):
    print(line.rstrip())
model = client.get_models(name="digits")[0]
model.register_version("5ae3fb5d").set_notes("the best so far")
core_v2.init(defaults=core_v2.DefaultConfig(name="mine"))
core_v2.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
core_v2.close()
"""
FAULTY = """\
import uuid
import determined as det
from determined import searcher
from determined.common import api
from determined.experimental import client, core_v2

class Trial(det.pytorch.PyTorchTrial):
    pass

context = det.pytorch.CheckpointLoadContext()

det.no_such_name
det.core.init(distribution=None)
det.pytorch.no_such_name
det.pytorch.Trainer(1)
det.pytorch.init(hparams=["lr"])
det.pytorch.Epoch(1.5)
det.pytorch.load_trial_from_checkpoint_path("folder", Trial).no_such_name
context.wrap_scaler("scaler").no_such_name
context.wrap_lr_scheduler("scheduler", det.pytorch.LRScheduler.StepMode.MANUAL_STEP).no_such_name
det.constants.DEFAULT_EXP_CFG.no_such_name
det.experimental.no_such_name
det.searcher.Close()
det.util.no_such_name
api.no_such_name
client.no_such_name
client.create_experiment("config.yaml")
client.get_experiment("seven")
client.get_trial(7).logs(heads=3)
client.get_checkpoint("5ae3fb5d").no_such_method()
searcher.Create(uuid.uuid4(), hparams="lr")
core_v2.init(default=core_v2.DefaultConfig())
core_v2.train.report_training_metrics("one", {})
"""
MYPY = """\
[mypy]
mypy_path = stubs
ignore_missing_imports = True
check_untyped_defs = True
follow_imports = skip
[mypy-determined.*,det_contracts.*]
follow_imports = silent
"""
WRONG = set(range(FAULTY.splitlines().index("det.no_such_name") + 1, len(FAULTY.splitlines()) + 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("scripts")
    for name in SCRIPTS:
        shutil.copy(EXAMPLES / f"{name}.py", made / f"script_{name.replace('/', '_')}.py")
    (made / "client_script.py").write_text(CLIENT)
    (made / "faulty.py").write_text(FAULTY)
    for name in OTHERS:
        (made / "stubs" / name).mkdir(parents=True)
        (made / "stubs" / name / "__init__.pyi").write_text(
            "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"
        )
    return made


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=240)


def by_mypy(folder):
    (folder / "mypy.ini").write_text(MYPY)
    files = sorted(path.name for path in folder.glob("*.py"))
    done = run([sys.executable, "-m", "mypy", "--config-file", "mypy.ini", *files], folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    matches = re.findall(r"^([\w.]+):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(name, int(line), text) for name, line, text in matches]


def by_pyright(folder):
    version = run([sys.executable, "-m", "pyright", "--version"], folder)
    if version.returncode:
        pytest.skip(f"pyright needs Node and its package of npm: {(version.stdout + version.stderr)[-200:]}")
    settings = {
        "include": ["*.py"],
        "stubPath": "stubs",
        "reportMissingImports": False,
        "reportMissingModuleSource": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run([sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable], folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [
        (Path(diagnostic["file"]).name, diagnostic["range"]["start"]["line"] + 1, diagnostic["message"])
        for diagnostic in json.loads(done.stdout)["generalDiagnostics"]
        if diagnostic["severity"] == "error"
    ]


@pytest.mark.parametrize("check", [by_mypy, pytest.param(by_pyright, marks=pytest.mark.full)])
def test_scripts_are_accepted_and_what_is_wrong_is_found(check, folder):
    errors = check(folder)
    assert [error for error in errors if error[0] != "faulty.py"] == []
    assert {line for name, line, _ in errors if name == "faulty.py"} == WRONG
