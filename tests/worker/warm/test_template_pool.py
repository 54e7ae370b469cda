"""Templates are made of what runs held, kept within a budget, and ended when they would change a result."""

import asyncio
import contextlib
import os

import pytest

from services.kit import host_processes
from services.kit.since_boot import since_boot
from worker import process
from worker.last_contact import ContactFile
from worker.warm.memory import Memory
from worker.warm.template import NoTemplate
from worker.warm.template_pool import PoolEntry, TemplatePool
from worker.warm.warm_start import ColdStart, Key, WarmStart

pytestmark = pytest.mark.live

ARGV = ["python3", "train.py"]


class Roomy:
    """A host with memory to spare, until it is told otherwise."""

    budget = 2**34
    short = False

    def is_short(self):
        return self.short


class Kept:
    """A nursery that is kept while a test runs runs one after the other."""

    def __init__(self, both, **more):
        self.both, self.memory = both, Roomy()
        self.nursery = TemplatePool(lambda: True, self.memory, **more)

    async def run(self, argv=ARGV, **env):
        """How a run starts, and its lines."""
        plan = self.both.wanted(argv, **env)
        run = self.both.prepare(argv, **env)
        why = await self.nursery.start(run, plan)
        if why:
            return why, self.both.cold(argv, **env)[0]["stdout"]
        record_end = await asyncio.to_thread(self.both._end, run)
        await self.nursery.record_end(run, plan)
        return "warm", record_end[0]["stdout"]

    async def until(self, fact):
        async with asyncio.timeout(60):
            while not fact():
                await asyncio.sleep(0.01)

    async def until_warm(self, **env):
        await self.until(lambda: self.nursery.templates)
        how, lines = await self.run(**env)
        assert how == "warm", how
        return lines

    def entry(self):
        return next(iter(self.nursery._entries.values()))


@contextlib.asynccontextmanager
async def running_pool(both, **more):
    made = Kept(both, **more)
    keeping = asyncio.create_task(made.nursery.run_forever())
    try:
        yield made
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


@pytest.fixture
def packages(tmp_path):
    """A folder of installed packages: nobody may write to those of the environment."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def test_what_a_script_begins_with_is_loaded_before_any_run_has_ended(both):
    both.write("import own; own.work()")
    both.write("import sys; seen = 'numpy' in sys.modules; import numpy\ndef work(): print(seen)", "own.py")

    async def story():
        async with running_pool(both) as pool:
            plan = both.wanted(ARGV)
            assert await pool.nursery.start(both.prepare(ARGV), plan) == "no template was ready"
            assert await pool.until_warm() == ["True"]
            assert not pool.entry().needs_template
            assert "numpy" in pool.entry().modules

    asyncio.run(story())


def test_the_first_is_cold_the_next_is_warm_and_the_one_after_has_its_packages(both):
    both.write("import sys; print('numpy' in sys.modules); __import__('numpy')")

    async def story():
        async with running_pool(both) as pool:
            assert (await pool.run())[0] == "no template was ready"
            assert await pool.until_warm() == ["False"]
            await pool.until(lambda: pool.entry().template and "numpy" in pool.entry().template.modules)
            assert await pool.until_warm() == ["True"]
            assert pool.nursery.starts == {"warm": 2, "cold": 1}

    asyncio.run(story())


def test_code_with_a_module_of_the_same_name_starts_cold(both):
    both.write("import numpy; print(numpy.__version__)")

    async def story():
        async with running_pool(both) as pool:
            await pool.run()
            await pool.until_warm()
            await pool.until(lambda: pool.entry().template and "numpy" in pool.entry().template.modules)
            both.write("__version__ = 'own'", "numpy.py")
            how, lines = await pool.run()
            assert "'numpy'" in how
            assert lines == ["own"]

    asyncio.run(story())


def test_packages_that_must_not_be_forked_are_left_to_a_script_that_begins_with_them(both, packages):
    (packages / "package.py").write_text("import os; os.umask(0o77)")
    with_packages(both, packages)
    both.write("import sys; print('package' in sys.modules, 'numpy' in sys.modules); import package, numpy")

    async def story():
        async with running_pool(both) as pool:
            assert (await pool.run(PYTHONPATH=str(packages)))[0] == "no template was ready"
            assert await pool.until_warm(PYTHONPATH=str(packages)) == ["False True"]
            assert pool.entry().excluded_packages == {"package"}

    asyncio.run(story())


def test_a_template_is_made_anew_once_runs_have_loaded_by_themselves_as_much_as_it_would():
    entry = PoolEntry(warm_start())
    assert entry.needs_template
    entry.replace_template(Made(["one", "two", "three"]), [], 0.1)
    assert not entry.needs_template
    entry.add_modules(["four", "five"])
    entry.add_modules(["one"])
    assert not entry.needs_template
    entry.add_modules(["four", "five"])
    assert entry.needs_template
    entry.replace_template(Made([]), list(entry.modules), 0.0)
    entry.add_modules(["four", "five"])
    assert (entry.needs_template, entry.loaded_by_runs, len(entry.modules)) == (False, 0, 5)


class Made:
    """Stands for a template that has loaded modules."""

    def __init__(self, in_order):
        self.in_order = in_order

    def end(self):
        pass


def warm_start():
    return WarmStart(Key("ann", ("python3",), ()), "train.py", False, (), ())


def test_a_template_that_was_killed_is_of_no_use_and_another_is_made(both):
    both.write("print(1)")

    async def story():
        async with running_pool(both) as pool:
            await pool.run()
            await pool.until_warm()
            os.kill(pool.entry().template._pid, 9)
            assert (await pool.run())[1] == ["1"]
            assert await pool.until_warm() == ["1"]

    asyncio.run(story())


def test_it_ends_where_memory_is_short_and_runs_go_on(both):
    both.write("import sys; print(sys.stdin.read(), end='one'); import time; time.sleep(0.5); print('two')")

    async def story():
        async with running_pool(both) as pool:
            await pool.run()
            await pool.until(lambda: pool.nursery.templates)
            plan, run = both.wanted(ARGV), both.prepare(ARGV)
            assert await pool.nursery.start(run, plan) == ""
            pool.memory.short = True
            pool.nursery._wake.set()
            await pool.until(lambda: not pool.nursery.templates)
            assert (await asyncio.to_thread(both._end, run))[0]["stdout"] == ["onetwo"]

    asyncio.run(story())


def test_no_more_than_the_budget(both):
    both.write("print(1)")

    async def story():
        async with running_pool(both, most=1) as pool:
            await pool.run()
            await pool.until_warm()
            await pool.run(LANG="other")
            await pool.until(lambda: list(pool.nursery._entries.values())[-1].template)
            assert pool.nursery.templates == 1
            pool.memory.budget = 1
            await pool.run(LANG="third")
            await pool.until(lambda: "MiB" in list(pool.nursery._entries.values())[-1].problem)
            assert pool.nursery.templates == 0

    asyncio.run(story())


def test_switched_off(both):
    both.write("print(1)")

    async def story():
        async with running_pool(both, enabled=False) as pool:
            assert "switched off" in (await pool.run())[0]
            assert await pool.nursery.start(both.prepare(ARGV), ColdStart("so")) == "so"
            assert not pool.nursery.templates

    asyncio.run(story())


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", "threads"),
        ("import socket; kept = socket.socket()", "opens files or sockets"),
        ("import os; os.environ.get('DET_INFO_DIR')", "asks for DET_INFO_DIR"),
        ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", "signal handlers"),
        ("import os; os.umask(0o77)", "the umask"),
        ("import sys; sys.excepthook = print", "hooks"),
        ("import logging; logging.basicConfig()", "the root logger"),
        ("import random; random.seed(3)", "seeds the generator of random"),
        ("import numpy; numpy.random.seed(3)", "seeds the generator of numpy.random"),
        # As the two above it, but torch takes seconds to load.
        pytest.param(
            "import torch; torch.manual_seed(3)", "seeds the generator of torch", marks=pytest.mark.full
        ),
        ("import numpy; own = numpy.random.default_rng()", "keeps a"),
        ("import os; print(os.getcwd())", "the working directory"),
        (
            "import time, os; os.register_at_fork(after_in_child=lambda: time.sleep(60))",
            "failed a test computation",
        ),
    ],
)
def test_what_is_not_fit_to_be_forked(both, packages, code, why):
    (packages / "package.py").write_text(code)
    plan = with_packages(both, packages)
    with pytest.raises(NoTemplate, match=why):
        both.templates.get(plan, ["package"])


def test_an_ended_interpreter_is_noticed_though_its_output_is_held_open(both, packages):
    os.mkfifo(packages / "held")
    start = f"subprocess.Popen(['cat', {str(packages / 'held')!r}], start_new_session=True)"
    ends = f"import os, subprocess\n{start}\nos.write(2, b'gone')\nos._exit(3)"
    (packages / "sitecustomize.py").write_text(ends)
    both.write("print(1)")
    with pytest.raises(NoTemplate, match="its interpreter ended: gone"):
        both.templates.get(both.wanted(ARGV, PYTHONPATH=str(packages)))
    # `cat` ends with who opens the pipe beside it.
    (packages / "held").open("wb").close()


def with_packages(both, packages):
    """A plan whose interpreter has one folder more of installed packages."""
    (packages / "sitecustomize.py").write_text(f"import site; site.addsitedir({str(packages / 'more')!r})")
    (packages / "more").mkdir()
    for path in packages.glob("package.py"):
        path.rename(packages / "more" / path.name)
    both.write("import package; print(package.__dict__.get('VALUE'))")
    return both.wanted(ARGV, PYTHONPATH=str(packages))


def test_a_fence_ends_what_started_warm_with_all_that_came_of_it(both, tmp_path):
    both.write(
        "import os, time\nos.fork()\nos.setsid() if os.getpid() != os.getsid(0) else 0\n"
        "print('here', flush=True)\ntime.sleep(1000)"
    )
    plan, contact = both.wanted(ARGV), ContactFile(tmp_path / "contact")
    contact.record(since_boot())
    run = both.prepare(ARGV, fence=process.Fence(str(tmp_path / "contact"), 600.0))
    assert asyncio.run(both.templates.get(plan).start(plan, run))
    both.runs.wait_for_line(run, "here")
    contact.record(since_boot() - 601.0)
    ended = both.runs.ended(run)
    assert (ended.code, ended.signal, ended.lost) == (137, 9, True)


def test_nothing_starts_warm_on_a_host_that_is_out_of_touch(both, tmp_path):
    both.write("print('begun', flush=True)")
    ContactFile(tmp_path / "contact").record(since_boot() - 601.0)
    plan = both.wanted(ARGV)
    run = both.prepare(ARGV, fence=process.Fence(str(tmp_path / "contact"), 600.0))
    assert asyncio.run(both.templates.get(plan).start(plan, run))
    ended = both.runs.ended(run)
    assert (ended.code, ended.signal, ended.lost) == (137, None, True)
    assert "begun" not in [text for _, text in both.runs.lines(run)]


def test_strays_of_a_run_whose_shim_was_killed_are_found(both):
    """By their environment: /proc would show the template's, and shows the run's."""
    both.write(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\nprint('here', flush=True)\ntime.sleep(1000)"
    )
    plan, run = both.wanted(ARGV), both.prepare(ARGV)
    assert asyncio.run(both.templates.get(plan).start(plan, run))
    both.runs.wait_for_line(run, "here")
    running = process._read_running(run)
    below = host_processes.descendants(running.shim.pid, running.command.pid)
    assert len(below) == 2
    os.kill(running.shim.pid, 9)
    both.runs.eventually(lambda: process.state_of(run) == "lost", "the loss")
    process.end_lost_run(run, "its shim was killed")
    assert not [pid for pid in below if host_processes.started(pid)]


def test_modules_that_lie_elsewhere_are_never_loaded(both, tmp_path):
    (tmp_path / "elsewhere.py").write_text("raise SystemExit('loaded')")
    both.write("print(1)")
    both.write("raise SystemExit('loaded')", "own.py")
    made = both.templates.get(
        both.wanted(ARGV, PYTHONPATH=str(tmp_path)), ["elsewhere", "own", "antigravity", "no.such"]
    )
    assert not {"elsewhere", "own", "antigravity", "no"} & (made.modules | made.tops)


def test_a_package_that_changes_is_loaded_anew(both, packages):
    (packages / "package.py").write_text("VALUE = 1")
    plan = with_packages(both, packages)
    made = both.templates.get(plan, ["package"])
    assert "package" in made.modules
    variables = {"PYTHONPATH": str(packages)}
    assert asyncio.run(made.start(plan, first := both.prepare(ARGV, **variables)))
    assert both._end(first)[0]["stdout"] == ["1"]
    (packages / "more" / "package.py").write_text("VALUE = 22")
    assert not asyncio.run(made.start(plan, both.prepare(ARGV, **variables)))


@pytest.mark.parametrize("sets", ["os.environ['SWITCH'] = 'on'", "os.environ.setdefault('SWITCH', 'on')"])
def test_a_package_sees_the_variable_that_the_script_sets_before_it_imports_it(both, packages, sets):
    (packages / "package.py").write_text("import os\nVALUE = os.environ.get('SWITCH')")
    with_packages(both, packages)
    both.write(f"import os\n{sets}\nimport package; print(package.VALUE)")
    variables = {"PYTHONPATH": str(packages)}

    async def story():
        async with running_pool(both) as pool:
            assert await pool.run(**variables) == ("no template was ready", ["on"])
            assert await pool.until_warm(**variables) == ["on"]
            await pool.until(lambda: pool.entry().excluded_packages == {"package"})
            assert await pool.until_warm(**variables) == ["on"]

    asyncio.run(story())


def test_generators_that_modules_keep_begin_anew_or_are_seeded(both, packages):
    (packages / "package.py").write_text("import random\nown = random.Random()\ngiven = random.Random(5)")
    plan = with_packages(both, packages)
    both.write("import package; print(package.given.random()); print(package.own.random())")
    outputs = []
    for _ in range(3):
        run = both.prepare(ARGV, PYTHONPATH=str(packages))
        assert asyncio.run(both.templates.get(plan, ["package"]).start(plan, run))
        outputs.append(both._end(run)[0]["stdout"])
    assert len({from_seed for from_seed, _ in outputs}) == 1
    assert len({own for _, own in outputs}) == 3


def test_the_memory_of_this_host(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:  1200 kB\nMemAvailable:  99 kB\n")
    assert Memory(tmp_path / "meminfo").is_short()
    (tmp_path / "meminfo").write_text("MemTotal:  1200 kB\nMemAvailable:  101 kB\n")
    assert not Memory(tmp_path / "meminfo").is_short()
    assert Memory(tmp_path / "meminfo").budget == 1200 * 1024 // 8
    assert not Memory(tmp_path / "nowhere").is_short()
