"""What one run may use: memory, processes and a share of the processor, held by the kernel."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.kit.settings import BadSettings
from worker import control_groups, process
from worker.control_groups import MEMORY, PIDS, RunGroups, groups_of
from worker.settings import WorkerSettings
from worker.shim.control_group import ControlGroups, write_value
from worker.shim.life import OUT_OF_MEMORY

pytestmark = pytest.mark.live

MEMORY_MIB = 64
PROCESSES = 24


@pytest.fixture
def groups():
    made = RunGroups(f"t{os.getpid()}", slot_memory_mib=MEMORY_MIB, max_processes=PROCESSES)
    if {MEMORY, PIDS} & set(made.missing):
        pytest.skip(f"no control groups can be made here: {made.missing}")
    yield made
    made.remove_all_except(())


@pytest.fixture
def start(runs, groups):
    def start(*argv, name="run", slots=1):
        run = runs.dir(name)
        env = {"PATH": os.environ["PATH"]}
        process.prepare(run, argv, "/", env, groups=groups.groups(name, slots))
        process.start(run)
        return run

    return start


def folders(groups, name="run"):
    return [group.folder for group in groups.groups(name, 1)]


def test_a_run_has_groups_of_its_own_and_its_shim_is_in_none(runs, groups, start):
    run = start("sh", "-c", "cat /proc/self/cgroup; exec sleep 1000")
    named = os.path.basename(folders(groups)[0])
    runs.wait_for_line(run, named)
    running = process._read_running(run)
    control = ControlGroups([{"folder": folder, "values": []} for folder in folders(groups)])
    assert running.command.pid in control.pids()
    assert running.shim.pid not in control.pids()
    process.kill(run)
    runs.ended(run)
    assert not any(os.path.exists(folder) for folder in folders(groups))


@pytest.mark.parametrize(
    ("files", "entered"), [(("cgroup.procs", "tasks"), "tasks"), (("cgroup.procs",), "cgroup.procs")]
)
def test_a_command_does_not_wait_for_others_that_fork(tmp_path, files, entered):
    """In version 1, only a process that moves as a single thread need not wait."""
    for name in files:
        (tmp_path / name).touch()
    ControlGroups([{"folder": str(tmp_path), "values": []}]).enter()
    assert {name: (tmp_path / name).read_text() for name in files} == {
        name: "0" if name == entered else "" for name in files
    }


EATS = f"x = bytearray({3 * MEMORY_MIB} << 20)"


@pytest.mark.parametrize("how", ["exec {}", "{}", "{}; exit 3"])
def test_who_takes_more_memory_than_its_slots_have_is_ended_and_told(runs, start, how):
    run = start("sh", "-c", how.format(f"{sys.executable} -c '{EATS}'"))
    run_exit = runs.ended(run)
    assert run_exit.message == f"{OUT_OF_MEMORY} (limit: {MEMORY_MIB} MiB)"
    assert run_exit.code == (3 if "exit" in how else 137)
    assert ("stderr", run_exit.message) in runs.lines(run)


def test_memory_is_for_each_slot(runs, start):
    assert runs.ended(start(sys.executable, "-c", EATS, slots=4)).code == 0


def test_the_end_of_another_run_is_not_taken_for_its_own(runs, start):
    """The host counts processes that ended for memory, whoever's they were."""
    waits = start("sh", "-c", "read line < /dev/stdin; sleep 1000 & wait; exit 1", name="waits")
    eats = start(sys.executable, "-c", EATS, name="eats")
    assert runs.ended(eats).message.startswith(OUT_OF_MEMORY)
    os.kill(process._read_running(waits).command.pid, 9)
    assert runs.ended(waits).message == ""


MULTIPLIES = """
import os
while True:
    try:
        os.fork()
    except OSError as error:
        pass
"""


def test_a_fork_bomb_stays_in_its_group_and_is_ended(runs, groups, start):
    bomb = start(sys.executable, "-c", MULTIPLIES, name="bomb")
    inside = ControlGroups([{"folder": folder, "values": []} for folder in folders(groups, "bomb")])
    runs.eventually(inside.refused_processes, "a refusal")
    assert len(inside.pids()) <= PROCESSES
    assert runs.ended(start("true", name="other")).code == 0
    process.kill(bomb)
    runs.ended(bomb)
    assert not any(os.path.exists(folder) for folder in folders(groups, "bomb"))
    assert any("further processes or threads" in text for _, text in runs.lines(bomb))


def test_a_lost_run_is_found_by_its_group(runs, groups, start):
    """A process that left the session and cleared its environment is ended, too."""
    run = start("sh", "-c", "env -i setsid sleep 1000 & echo begun; wait")
    runs.wait_for_line(run, "begun")
    inside = ControlGroups([{"folder": folder, "values": []} for folder in folders(groups)])
    runs.eventually(lambda: len(inside.pids()) > 1, "both processes")
    os.kill(process._read_running(run).shim.pid, 9)
    runs.eventually(lambda: process.state_of(run) == "lost", "the loss")
    process.end_lost_run(run, "lost")
    assert not any(os.path.exists(folder) for folder in folders(groups))


def test_what_an_earlier_worker_left_is_removed(groups):
    for name in ("left", "kept"):
        ControlGroups([{"folder": folder, "values": []} for folder in folders(groups, name)]).make()
    groups.remove_all_except({"kept"})
    assert all(os.path.exists(folder) for folder in folders(groups, "kept"))
    assert not any(os.path.exists(folder) for folder in folders(groups, "left"))


def test_a_run_whose_limits_cannot_be_set_does_not_start(runs):
    run = runs.dir("run")
    nowhere = process.Group("/proc/steadfast", (("pids.max", "1"),))
    process.prepare(run, ["true"], "/", {"PATH": "/usr/bin:/bin"}, groups=(nowhere,))
    process.start(run)
    run_exit = runs.ended(run)
    assert run_exit.code == 127
    assert run_exit.message.startswith("the task could not be given the limits of this worker")


def second_version(folder, *, own="/", kinds="memory pids cpu", processes=()):
    """What a kernel with one tree shows, as files."""
    tree = folder / "tree"
    for path in (tree, tree / own.lstrip("/")):
        path.mkdir(parents=True, exist_ok=True)
        (path / "cgroup.controllers").write_text(kinds)
        (path / "cgroup.subtree_control").write_text("")
        (path / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in processes))
        if path != tree:
            (path / "cgroup.type").write_text("domain\n")
    (folder / "cgroup").write_text(f"0::{own}\n")
    (folder / "mountinfo").write_text(f"30 23 0:28 / {tree} rw,relatime - cgroup2 cgroup2 rw\n")
    return tree


def test_a_group_with_other_programs_in_it_is_not_taken(tmp_path):
    second_version(tmp_path, own="/user.slice", processes=(os.getpid(), 1))
    groups = RunGroups("w", proc=tmp_path)
    assert "DelegateSubgroup=steadfast-worker" in groups.missing[MEMORY]
    assert groups.groups("1.r.1", 1) == ()


def test_a_kind_that_the_groups_above_do_not_pass_on_is_named(tmp_path):
    second_version(tmp_path, kinds="cpu pids")
    groups = RunGroups("w", proc=tmp_path)
    assert "'memory' is not in its cgroup.controllers" in groups.missing[MEMORY]
    assert "not in its" not in groups.missing[PIDS]


class FakeKernel:
    """Moves processes between groups that are files, as a write to `cgroup.procs` does."""

    def __init__(self, own, forks):
        self._own, self._forks = own, forks

    def write(self, path, value):
        file = Path(path)
        if file.name != "cgroup.procs":
            return file.write_text(value)
        left = [pid for pid in (self._own / "cgroup.procs").read_text().split() if pid != value]
        # One forked while it was moved: its child is still in the old group.
        left += [self._forks.pop()] if self._forks else []
        (self._own / "cgroup.procs").write_text("\n".join(left))
        with file.open("a") as moved:
            moved.write(f"{value}\n")


def test_what_is_in_a_delegated_group_moves_below_it(tmp_path, monkeypatch):
    """With `systemd-run --scope -p Delegate=yes`, the whole cluster is in one group."""
    tree = second_version(tmp_path, own="/run-1.scope", processes=(os.getpid(), 7, 8))
    own = tree / "run-1.scope"
    monkeypatch.setattr(control_groups, "write_value", FakeKernel(own, ["9", "10"]).write)
    monkeypatch.setattr(control_groups, "_is_delegated", lambda group: group == own)
    monkeypatch.setattr(ControlGroups, "make", lambda _: None)
    groups = RunGroups("w", max_processes=7, proc=tmp_path)
    assert groups.missing == {}
    assert (own / "cgroup.procs").read_text() == ""
    moved = (own / "steadfast-worker" / "cgroup.procs").read_text().split()
    assert sorted(moved) == sorted([str(os.getpid()), "7", "8", "9", "10"])


@pytest.fixture
def delegated():
    """A group of a real kernel's second version, handed over as systemd does."""
    mount = next(
        (tree.mount for tree in control_groups._trees(Path("/proc/self")) if tree.version == 2), None
    )
    group = Path(mount or "/", f"steadfast-delegated-{os.getpid()}")
    try:
        group.mkdir()
        os.setxattr(group, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"no group of the second version can be made here: {error}")
    yield group
    for folder in (group / "steadfast-worker", group):
        with contextlib.suppress(FileNotFoundError):
            folder.rmdir()


def test_a_kernel_lets_a_delegated_group_be_emptied_and_then_limit(delegated):
    """With any kind of limit that this kernel has in its second version."""
    kind = next(iter((delegated / "cgroup.controllers").read_text().split()), "")
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            write_value(str(delegated / "cgroup.procs"), str(other.pid))
            tree = control_groups.Tree(2, delegated.parent, delegated)
            if not kind:
                with pytest.raises(OSError, match=r"not in its cgroup\.controllers"):
                    control_groups._base(tree, delegated, MEMORY)
            else:
                assert control_groups._base(tree, delegated, kind) == delegated
                assert (delegated / "cgroup.subtree_control").read_text().split() == [kind]
            assert (delegated / "cgroup.procs").read_text() == ""
            assert (delegated / "steadfast-worker" / "cgroup.procs").read_text() == f"{other.pid}\n"
        finally:
            other.kill()
    for _ in iter((delegated / "steadfast-worker" / "cgroup.procs").read_text, ""):
        pass


def test_the_second_version_has_one_group_for_all_limits(tmp_path, monkeypatch):
    tree = second_version(tmp_path, own="/unit/steadfast-worker")
    (tree / "unit" / "cgroup.type").write_text("domain\n")
    (tree / "unit" / "cgroup.controllers").write_text("cpu memory pids")
    (tree / "unit" / "cgroup.subtree_control").write_text("cpu memory pids")
    monkeypatch.setattr(ControlGroups, "make", lambda _: None)
    (group,) = RunGroups("w", slot_memory_mib=10, max_processes=7, proc=tmp_path).groups("1.r.1", 3)
    assert group.folder == str(tree / "unit" / "steadfast-w-1.r.1")
    values = dict(group.values)
    assert values.pop("memory.swap.max", "0") == "0"
    assert values == {"memory.max": str(30 << 20), "pids.max": "7", "cpu.weight": "300"}


def test_a_worker_alone_in_its_group_moves_into_one_of_its_own(tmp_path, monkeypatch):
    tree = second_version(tmp_path, own="/unit", processes=(os.getpid(),))
    leaf = tree / "unit" / "steadfast-worker"
    leaf.mkdir()
    (leaf / "cgroup.procs").write_text("")
    monkeypatch.setattr(ControlGroups, "make", lambda _: None)
    (group,) = RunGroups("w", max_processes=7, proc=tmp_path).groups("1.r.1", 1)
    assert (leaf / "cgroup.procs").read_text() == str(os.getpid())
    assert (tree / "unit" / "cgroup.subtree_control").read_text().startswith("+")
    assert ("pids.max", "7") in group.values


def test_a_container_sees_its_own_part_of_the_tree(tmp_path):
    tree = second_version(tmp_path, own="/docker/f00")
    mount = f"30 23 0:28 /docker {tree} rw - cgroup2 cgroup2 rw\n"
    (tree / "f00").mkdir()
    (tmp_path / "mountinfo").write_text(mount)
    assert str(tree / "f00") in RunGroups("w", proc=tmp_path).missing[PIDS]


def test_a_limit_that_would_not_be_kept_is_refused(tmp_path):
    settings = WorkerSettings(worker_home=tmp_path, worker_slot_memory_mib=10, worker_cgroup="none")
    with pytest.raises(BadSettings, match="SLOT_MEMORY_MIB=10: this worker cannot limit memory"):
        groups_of(settings, "w")
    with pytest.raises(BadSettings, match="docker limits its containers itself"):
        groups_of(
            WorkerSettings(worker_home=tmp_path, worker_slot_memory_mib=10, worker_launcher="docker"), "w"
        )


def test_a_group_below_another_that_the_operator_names(groups):
    name = f"/steadfast-test-{os.getpid()}"
    below = RunGroups("w", below=name, max_processes=5)
    assert all(f"{name}/steadfast-w-1.r.1" in group.folder for group in below.groups("1.r.1", 1))
    for group in below.groups("1.r.1", 1):
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(group.folder))
