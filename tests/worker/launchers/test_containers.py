"""What is laid out for a container: the shim's command and what ends it, its variables, its image."""

import asyncio
import json
import pwd
import shlex
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest

from det_contracts.roots import Roots
from worker import process
from worker.account import Account, max_processes
from worker.launchers import ENGINES, BadLauncher, Refused, images, variables_file
from worker.launchers.container_request import read_request
from worker.launchers.containers import IMAGE_FILE, Containers, Image, Task, check_launcher, user_variables
from worker.launchers.engine import Registry
from worker.ports import Ports
from worker.settings import WorkerSettings
from worker.shim import engine
from worker.startup_hook import add_hook_for_any_shell
from worker.utilisation.sampling import processes_of

ANN = Account(64_001, 64_002, "ann")
"""An account without an entry in this host's list of users."""
KNOWN = Account(pwd.getpwnam("nobody").pw_uid, 64_002, "nobody")


@pytest.fixture
def task(tmp_path):
    for name in ("workdir", "info", "model"):
        (tmp_path / "home" / name).mkdir(parents=True)
    return Task(
        allocation_id="1.t1.1",
        argv=("python3", "train.py"),
        variables={"A_TOKEN": "hush", "LD_PRELOAD": "/tmp/x.so", "odd.name": "x"},
        workdir=tmp_path / "home" / "workdir",
        info_dir=tmp_path / "home" / "info",
        account=ANN,
        ports=Ports(1, 2, 3, 4),
        storage=None,
        gpus=(),
    )


def laid_out(tmp_path, task, name="docker", config=None, **settings):
    run_dir = tmp_path / "run"
    run_dir.mkdir(exist_ok=True)
    made = Containers(ENGINES[name], WorkerSettings(**settings), "0123456789abcdef", Roots())
    return made.prepare_container(run_dir, task, read_request(config or {}, (), str(task.workdir)))


def test_what_the_shim_runs_and_what_ends_it(tmp_path, task):
    laid = laid_out(tmp_path, task)
    assert laid.argv[:5] == ["docker", "run", "--rm", "--name", "steadfast-1.t1.1-0123456789ab"]
    assert "64001:64002" in laid.argv
    assert laid.argv[-2:] == ["python3", "train.py"]
    assert laid.end == process.End(("docker", "rm", "--force", "steadfast-1.t1.1-0123456789ab"), laid.end.env)
    # The engine's program runs as the worker, and is told the user.
    assert laid.run_as is None
    assert "steadfast/trial:cpu" in laid.argv
    assert Image("steadfast/trial:cpu") == msgspec.json.decode(
        (tmp_path / "run" / IMAGE_FILE).read_bytes(), type=Image
    )


def test_nothing_of_the_users_is_where_the_engines_program_sees_it(tmp_path, task):
    laid = laid_out(tmp_path, task)
    passed = json.dumps([laid.argv, laid.env, laid.end.env])
    assert "hush" not in passed
    assert "LD_PRELOAD" not in passed
    file = task.info_dir / variables_file.FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "export A_TOKEN=hush" in file.read_text()
    assert any("'odd.name' is not set" in notice for notice in laid.notices)


def test_apptainer_itself_runs_as_the_task(tmp_path, task):
    own = msgspec.structs.replace(task, account=KNOWN)
    laid = laid_out(tmp_path, own, "apptainer", {"environment": {"image": "/images/x.sif"}})
    assert laid.run_as == process.RunAs(KNOWN.uid, 64_002, (), max_processes(-1))
    assert laid.env["HOME"] == str(task.workdir)
    assert laid.end is None
    assert not (tmp_path / "run" / IMAGE_FILE).exists()
    assert "/images/x.sif" in laid.argv


def test_apptainer_takes_no_user_that_its_host_does_not_know(tmp_path, task, monkeypatch):
    with pytest.raises(Refused, match=r"apptainer cannot start .* no user with that id.*useradd"):
        laid_out(tmp_path, task, "apptainer")
    assert not (task.info_dir / variables_file.FILE).exists()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    settings = WorkerSettings(worker_launcher="apptainer", worker_run_as="64001:64002")
    with pytest.raises(BadLauncher, match=r"STEADFAST_WORKER_RUN_AS=64001:64002: .* no user with that id"):
        check_launcher(settings, ANN)
    check_launcher(settings, KNOWN)
    check_launcher(WorkerSettings(worker_launcher="docker"), ANN)


def test_a_storage_that_is_not_the_platforms_is_mounted_by_the_rule_of_mounts(tmp_path, task):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    folder.chmod(0o755)
    storage = {"type": "shared_fs", "host_path": str(folder)}
    own = msgspec.structs.replace(task, storage=storage, account=None)
    with pytest.raises(Refused, match="is outside of what tasks of this worker may mount"):
        laid_out(tmp_path, own)
    laid = laid_out(tmp_path, own, worker_mount_roots=str(tmp_path))
    assert f"type=bind,source={folder},target=/determined_shared_fs" in laid.argv


def test_two_mounts_at_one_place_are_the_last(tmp_path, task):
    folder = tmp_path / "mine"
    folder.mkdir()
    config = {"bind_mounts": [{"host_path": str(folder), "container_path": "/run/determined/workdir"}]}
    own = msgspec.structs.replace(task, account=None)
    argv = laid_out(tmp_path, own, config=config, worker_mount_roots=str(tmp_path)).argv
    (mount,) = [word for word in argv if "target=/run/determined/workdir" in word]
    assert f"source={folder}," in mount


def test_variables_are_what_they_were_however_long_and_odd(tmp_path):
    payload = {"LINES": "one\ntwo 'three' $HOME `id`", "LONG": "x" * 100_000, "EMPTY": "", "SPACES": " a  "}
    assert variables_file.write_variables(tmp_path, payload) == []
    command = variables_file.add_variables(
        ["sh", "-c", 'printf "%s\\0" "$LINES" "$LONG" "$EMPTY" "$SPACES"'], tmp_path
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout.split("\0")[:-1] == list(payload.values())


@pytest.mark.parametrize("bash", [True, False])
def test_a_hook_finds_its_shell(tmp_path, bash):
    (tmp_path / "startup-hook.sh").write_text("export FROM_HOOK=hooked\n")
    path = "/usr/bin:/bin"
    if not bash:
        path = str(tmp_path / "bin")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    command = add_hook_for_any_shell(["/bin/sh", "-c", 'echo "$FROM_HOOK" "$1"', "x", "a b"])
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, env={"PATH": path}
    )
    assert done.stdout == "hooked a b\n"


def test_who_it_is_where_no_image_knows_its_user(tmp_path):
    assert user_variables(ANN, tmp_path) == {"HOME": str(tmp_path), "USER": "ann", "LOGNAME": "ann"}
    assert user_variables(None, tmp_path)["USER"]


def test_settings_by_which_no_task_could_start(monkeypatch):
    check_launcher(WorkerSettings())
    monkeypatch.setenv("PATH", "/nowhere")
    for settings, message in (
        (WorkerSettings(worker_launcher="kubectl"), "expected one of"),
        (WorkerSettings(worker_launcher="podman"), "no program 'podman' on PATH"),
        (WorkerSettings(worker_container_options="'"), "STEADFAST_WORKER_CONTAINER_OPTIONS"),
    ):
        with pytest.raises(BadLauncher, match=message):
            check_launcher(settings)


# -- images, by a program that notes down what it is told

PROGRAM = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$1 $2" in "image inspect") exit {missing};; esac
case "$3" in pull) cat "$2/config.json" > {folder}/credentials;; esac
[ {hangs} = 0 ] || exec sleep 600
echo "manifest unknown" >&2
exit {fails}
"""


@pytest.fixture
def docker(tmp_path, monkeypatch):
    def make(missing=1, fails=0, hangs=0):
        program = tmp_path / "bin" / "docker"
        program.parent.mkdir(exist_ok=True)
        program.write_text(PROGRAM.format(folder=tmp_path, missing=missing, fails=fails, hangs=hangs))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return make


def fetched(tmp_path, image):
    """What was said to the user, and what the program was told."""
    (tmp_path / IMAGE_FILE).write_bytes(msgspec.json.encode(image))
    messages = []

    async def say(text):
        messages.append(text)

    asyncio.run(images.fetch(ENGINES["docker"], tmp_path, say))
    return messages, (tmp_path / "calls").read_text().splitlines()


def test_an_image_that_is_here_is_not_asked_for(tmp_path, docker):
    docker(missing=0)
    assert fetched(tmp_path, Image("a:1")) == ([], ["image inspect a:1"])


def test_one_that_is_not_is_pulled_and_one_that_is_to_be_in_any_case(tmp_path, docker):
    docker()
    assert fetched(tmp_path, Image("a:1")) == (
        ["pulling image a:1"],
        ["image inspect a:1", "pull --quiet a:1"],
    )
    (tmp_path / "calls").unlink()
    docker(missing=0)
    assert fetched(tmp_path, Image("a:1", True)) == (["pulling image a:1"], ["pull --quiet a:1"])


def test_credentials_are_in_a_file_for_as_long_as_it_pulls(tmp_path, docker):
    docker()
    image = Image("registry.lan:5000/a:1", registry=Registry(username="ann", password="hush"))
    _, calls = fetched(tmp_path, image)
    assert calls[-1] == f"--config {tmp_path}/registry pull --quiet registry.lan:5000/a:1"
    assert json.loads((tmp_path / "credentials").read_text()) == {
        "auths": {"registry.lan:5000": {"auth": "YW5uOmh1c2g="}}
    }
    assert not (tmp_path / "registry").exists()


def test_an_image_that_cannot_be_pulled_is_reported_quoting_the_engine(tmp_path, docker):
    docker(fails=1)
    with pytest.raises(images.CannotFetch, match=r"image a:1 cannot be pulled by docker: manifest unknown"):
        fetched(tmp_path, Image("a:1", registry=Registry(username="ann", password="hush")))
    assert not (tmp_path / "registry").exists()


def test_who_waits_for_an_image_can_give_up(tmp_path, docker):
    docker(hangs=1)
    (tmp_path / IMAGE_FILE).write_bytes(msgspec.json.encode(Image("a:1", registry=Registry(username="ann"))))

    async def live():
        async def say(_):
            pulling.set()

        pulling = asyncio.Event()
        work = asyncio.ensure_future(images.fetch(ENGINES["docker"], tmp_path, say))
        await pulling.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 60)

    asyncio.run(live())
    assert not (tmp_path / "registry").exists()


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("train", "https://index.docker.io/v1/"),
        ("team/train:1", "https://index.docker.io/v1/"),
        ("localhost/train", "localhost"),
        ("registry.lan:5000/team/train", "registry.lan:5000"),
    ],
)
def test_the_registry_of_an_image(name, server):
    assert images.server_of(Image(name)) == server
    assert images.server_of(Image(name, registry=Registry(serveraddress="x"))) == "x"


# -- the end of a container


def ending(tmp_path, script):
    path = tmp_path / "end"
    path.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/asked\n{script}\n")
    path.chmod(0o755)
    return [str(path)]


def test_a_missing_container_needs_no_end(tmp_path):
    words = "echo 'Error: No such container: x' >&2; exit 1"
    assert engine.end_container(ending(tmp_path, words), {"PATH": "/usr/bin:/bin"}) == ""
    assert (tmp_path / "asked").read_text().count("asked") == 1


def test_an_engine_that_does_not_answer_is_asked_again(tmp_path):
    words = f"[ $(wc -l < {tmp_path}/asked) -gt 2 ] || {{ echo 'cannot connect' >&2; exit 1; }}"
    assert engine.end_container(ending(tmp_path, words), {"PATH": "/usr/bin:/bin"}) == ""
    assert (tmp_path / "asked").read_text().count("asked") == 3
    (tmp_path / "asked").unlink()
    problem = engine.end_container(
        ending(tmp_path, "echo 'cannot connect' >&2; exit 1"), {"PATH": "/usr/bin:/bin"}, 0.0
    )
    assert problem == "the container may still run: cannot connect"


@pytest.mark.live
@pytest.mark.parametrize("how", ["by itself", "killed", "without its shim"])
def test_what_ends_a_container_runs_whichever_way_the_run_ends(runs, how):
    noted = runs.folder / "noted"
    run = runs.dir()
    end = process.End(("sh", "-c", f"echo ended >> {shlex.quote(str(noted))}"), {"PATH": "/usr/bin:/bin"})
    script = "echo here; exec sleep 600" if how != "by itself" else "exit 7"
    process.prepare(run, ["sh", "-c", script], runs.folder, {"PATH": "/usr/bin:/bin"}, end=end)
    process.start(run)
    if how == "killed":
        runs.wait_for_line(run, "here")
        process.kill(run)
    elif how == "without its shim":
        process.host_processes.send({process._read_running(run).shim.pid}, 9)
        runs.eventually(lambda: process.state_of(run) == "lost")
        assert process.end_lost_run(run, "gone").code == 137
    assert runs.ended(run).code == (7 if how == "by itself" else 137)
    assert noted.read_text() == "ended\n"


def test_processes_of_a_container_are_known_by_what_they_are_accounted_to(tmp_path):
    own, id_file = Path("/proc/self").resolve().name, tmp_path / "id"
    id_file.write_text("0f0f0f")
    (tmp_path / own).mkdir()
    (tmp_path / own / "cgroup").write_text("4:memory:/docker/0f0f0f\n")
    none = 2**22 + 1
    assert processes_of(none, none, id_file, tmp_path) == {int(own)}
    assert processes_of(none, none, tmp_path / "missing", tmp_path) == set()
