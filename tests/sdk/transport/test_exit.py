"""A script that ends without `close`: what it reported is stored, or told to be lost; it never hangs."""

import signal
import subprocess

import pytest

from det_contracts import checkpoint_ids, codec, subjects
from det_contracts.events import trial
from tests.fixtures.ports import reserved_port
from tests.fixtures.script import Script

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

BEGIN = """
import determined as det
core = det.core.init()
for step in range(1, 101):
    core.train.report_training_metrics(step, {"loss": 1.0})
"""
END = """
print("the end", flush=True)
"""
LATE = """
import asyncio, atexit, threading
from determined.transport.bus_thread import BusThread

ending, connect = threading.Event(), BusThread._connect

async def late(self):
    while not ending.is_set():
        await asyncio.sleep(0.01)
    return await connect(self)

BusThread._connect = late
"""
"""No connection is begun before the interpreter is ending."""
NOWHERE = "no-such-host.invalid"
STEPS = list(range(1, 101))


@pytest.fixture
def script(broker, tmp_path):
    made = Script(broker, tmp_path)
    made.make_streams()
    return made


def ended(process):
    """What a script said; its exit code must be that of a script that ends well."""
    try:
        output, errors = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"the script hangs; it said: {process.communicate()}")
    assert process.returncode == 0, errors
    assert "Exception ignored" not in errors
    return output + errors


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_what_it_reported_is_stored_whatever_the_broker_is_called(script, host):
    output = ended(script.start(LATE + BEGIN + "atexit.register(ending.set)" + END, host=host))
    assert script.steps() == STEPS
    assert output == "the end\n"


def test_a_broker_that_comes_back_meanwhile_gets_it_all(script):
    script.broker.kill9()
    process = script.start(BEGIN + END)
    assert process.stdout.readline() == "the end\n"
    script.broker.start()
    assert "lost" not in ended(process)
    assert script.steps() == STEPS


@pytest.mark.parametrize("host", ["localhost", NOWHERE])
def test_reports_lost_for_want_of_a_broker_are_counted_at_exit(script, host):
    script.broker.kill9()
    output = ended(script.start(BEGIN + END, host=host, STEADFAST_EXIT_PATIENCE_S="0.3"))
    assert "trial 7, run 1: lost, because the script ended before the cluster had stored it" in output
    assert "100 reports, from training metrics at 1 steps to training metrics at 100 steps;" in output
    assert "for 0.3 s nothing could be stored" in output
    assert f"{host}:" in output
    assert "Leave the core context with `with` or close()" in output


def test_a_checkpoint_in_the_background_does_not_hold_the_end_up(script, tmp_path):
    script.broker.kill9()
    folder = tmp_path / "weights"
    folder.mkdir()
    text = f"""
    from determined.transport import bus
    bus.FACT_S = 0.1
    import determined as det
    core = det.core.init()
    print(core.checkpoint.upload({str(folder)!r}, {{"steps_completed": 3}}, background=True))
    """
    output = ended(script.start(text, STEADFAST_EXIT_PATIENCE_S="0.3"))
    id = output.splitlines()[0]
    assert f"stored it: checkpoint {id}; for 0.3 s" in output


def test_a_checkpoint_of_an_outage_is_made_known_behind_the_reports_before_it(script, tmp_path):
    script.broker.kill9()
    folder = tmp_path / "weights"
    folder.mkdir()
    text = f"""
    from determined.transport import bus
    bus.FACT_S = 0.1
    import determined as det
    core = det.core.init()
    core.train.report_training_metrics(1, {{"loss": 1.0}})
    core.checkpoint.upload({str(folder)!r}, {{"steps_completed": 1}})
    core.train.report_training_metrics(2, {{"loss": 1.0}})
    print("the end", flush=True)
    """
    process = script.start(text)
    assert process.stdout.readline() == "the end\n"
    script.broker.start()
    ended(process)
    facts = [codec.decode(body, 0).event for body in script.stored(subjects.WITNESS)]
    (fact,) = [fact for fact in facts if isinstance(fact, trial.CheckpointStored)]
    assert fact.steps_completed == 1
    # Nobody else can register it: tests/intake/test_admission.py.
    assert fact.uuid == checkpoint_ids.make(fact.trial_id, fact.secret)
    assert script.steps() == [1, 2]


def test_interrupting_the_exit_says_what_is_lost(script):
    script.broker.kill9()
    text = BEGIN + "from determined.transport import outbox; outbox.PATIENCE_S = 0.1" + END
    process = script.start(text)
    line = ""
    while "waiting for the cluster to store 100 reports" not in line:
        line = process.stderr.readline()
        assert line, "the script ended before it was interrupted"
    process.send_signal(signal.SIGINT)
    output = ended(process)
    assert "lost, because the script ended" in output
    assert "interrupted by KeyboardInterrupt" in output


def test_a_thread_that_reports_on_and_on_does_not_hold_the_end_up(script):
    text = (
        BEGIN
        + """
import itertools, threading
def go_on():
    for step in itertools.count(101):
        core.train.report_training_metrics(step, {"loss": 1.0})
threading.Thread(target=go_on, daemon=True).start()
"""
        + END
    )
    ended(script.start(text))
    assert script.steps()[:100] == STEPS


def test_other_ranks_do_not_wait_for_what_the_chief_still_sends(script):
    script.broker.kill9()
    port = reserved_port()
    join = "dist = det.core.DistributedContext(rank={0}, size=2, local_rank={0}, local_size=2, cross_rank=0,"
    join += f" cross_size=1, pub_port={port})\n"
    chief = BEGIN.replace("core = det.core.init()", join.format(0) + "core = det.core.init(distributed=dist)")
    other = "import determined as det\n" + join.format(1) + "dist.broadcast(None)\n"
    processes = [script.start(chief), script.start(other)]
    _, complained = processes[1].communicate(timeout=90)
    assert "RuntimeError: rank 0 of this job has left" in complained
    assert processes[0].poll() is None
    script.broker.start()
    ended(processes[0])
    assert script.steps() == STEPS


def test_an_exit_code_and_a_traceback_are_the_scripts_own(script):
    process = script.start(BEGIN + "raise SystemExit(3)")
    _, complained = process.communicate(timeout=90)
    assert (process.returncode, complained) == (3, "")
    process = script.start(BEGIN.replace("range(1, 101)", "range(101, 201)") + "1 / 0")
    _, complained = process.communicate(timeout=90)
    assert process.returncode == 1
    assert complained.splitlines()[-1].startswith("ZeroDivisionError")
    assert script.steps() == list(range(1, 201))


def test_a_forked_process_may_not_report_and_leaves_the_reports_of_its_parent_alone(script):
    text = (
        BEGIN
        + """
import os, sys
child = os.fork()
if not child:
    try:
        core.train.report_training_metrics(1000, {"loss": 1.0})
    except RuntimeError as error:
        print(error)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
        + END
    )
    assert "does not run in this process" in ended(script.start(text))
    assert script.steps() == STEPS


def test_a_patience_that_is_no_number_is_refused_at_the_start(script):
    process = script.start(BEGIN, STEADFAST_EXIT_PATIENCE_S="soon")
    _, complained = process.communicate(timeout=90)
    assert "STEADFAST_EXIT_PATIENCE_S must be a number of seconds, 0 or more, not 'soon'" in complained
