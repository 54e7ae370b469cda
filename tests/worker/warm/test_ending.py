"""At its end, a fork of a template does not take apart, and so copy, what it shares with the template."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, os, sys
from worker.warm.inside import ending
# As in a template, where modules of the platform have no names.
for name in [name for name in sys.modules if name.partition(".")[0] == "worker"]:
    del sys.modules[name]
known = ending.watchful()
import asyncio, email, http.client, logging, typing, xml.dom.minidom, numpy, determined.core
{more}
if {installed}:
    ending.install(known)
gc.freeze()
if pid := os.fork():
    _, status, usage = os.wait4(pid, 0)
    print(status, usage.ru_minflt)
    os._exit(0)
ending.own_main()
{last}
"""


def faults(*, installed=True, more="", last=""):
    """How many pages a fork touched until its end."""
    program = PROGRAM.format(installed=installed, more=more, last=last)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    status, count = ran.stdout.split()
    assert (status, ran.stderr) == ("0", "")
    return int(count)


def test_a_fork_does_not_copy_what_it_shares_in_order_to_free_it():
    assert faults() < 0.6 * faults(installed=False)


@pytest.mark.parametrize(
    ("more", "last"),
    [
        ("class Left:\n    def __del__(self): pass\ntyping.left = Left()", ""),
        ("", "typing.left = open(os.devnull)"),
        ("", "import sqlite3; typing.left = sqlite3.connect(':memory:')"),
        ("", "del sys.__interactivehook__"),
        ("del sys.__interactivehook__", ""),
    ],
)
def test_a_fork_in_which_something_may_depend_on_it_does(more, last):
    assert faults(more=more, last=last) > 0.8 * faults(installed=False)


def test_a_fork_whose_main_program_has_returned_copies_less_still():
    assert faults(last="ending.main_returned()") < 0.6 * faults()


ENTERED = """
import contextlib
@contextlib.contextmanager
def lasting():
    try:
        yield
    finally:
        print("left", asyncio is not None, end="", file=sys.stderr)
typing.entered = lasting()
typing.entered.__enter__()
typing.counter = (number for number in range(9))
next(typing.counter)
"""
"""What torch and numpy leave behind: a context that is entered for good, and a generator that has begun."""
TRACKER = """
import multiprocessing.resource_tracker
class Tracker:
    _fd = None
    def __init__(self): self._fd = None
    def __del__(self):
        if self._fd is not None: print("stopped", end="", file=sys.stderr)
Tracker.__del__.__module__ = "multiprocessing.resource_tracker"
typing.tracker = Tracker()
"""
"""As that of Python 3.13 and of joblib, which stop the process that they have started."""


@pytest.mark.parametrize("more", [ENTERED, TRACKER])
def test_what_ends_unseen_does_not_make_a_fork_copy_everything(more):
    quietly = more.replace("print(", "repr((").replace(', end="", file=sys.stderr)', "))")
    assert faults(more=quietly, last="ending.main_returned()") < 0.4 * faults(installed=False, more=quietly)


@pytest.mark.parametrize("last", ["", "ending.main_returned()"])
def test_contexts_that_were_entered_for_good_are_left(last):
    assert written(ENTERED, last) == "left True"


RAISES = """
def raises():
    try:
        yield
    finally:
        raise ValueError("too late")
{0} = raises()
next({0})
"""


@pytest.mark.parametrize(
    ("more", "last"),
    [
        (RAISES.format("typing.entered"), ""),
        ("", "own = type(sys)('own'); typing.own = own" + RAISES.format("own.entered")),
    ],
)
def test_what_a_generator_raises_at_the_end_is_printed_as_the_interpreter_does(more, last):
    shown = written(more, f"{last}\nending.main_returned()")
    assert shown.startswith("Exception ignored in: <generator object raises at 0x")
    assert shown.endswith("ValueError: too late\n")


@pytest.mark.parametrize("last", ["", "ending.main_returned()"])
def test_a_tracker_that_has_started_something_stops_it(last):
    assert written(TRACKER, f"typing.tracker._fd = 0; {last}") == "stopped"


def test_what_libraries_gave_to_the_interpreter_for_its_end_is_called():
    assert "system bytes" in written(AT_EXIT, "ending.main_returned()")


def test_what_libraries_gave_to_c_for_its_end_is_called():
    library_call = "import ctypes; ctypes.CDLL(None).__cxa_atexit(ctypes.CDLL(None).malloc_stats, 0, 0)"
    assert "system bytes" in written("", f"{library_call}; ending.main_returned()")


TITLED = """
import ctypes
from worker.warm.inside import process_title
process_title.set_title(["python3", "train.py"], os.environ)
show = ctypes.create_string_buffer(b"cat /proc/$PPID/cmdline >&2")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(show))
ctypes.CDLL(None).__cxa_atexit(ctypes.CDLL(None).system, show, 0)
"""


def test_the_command_is_shown_until_the_process_is_gone():
    left = "class Left:\n    def __del__(self): pass\ntyping.left = Left()"
    assert written(left, TITLED) == "python3\0train.py\0"


CLAIMS = """
class Claims:
    __slots__ = ()
    __class__ = property(lambda self: type(sys))
sys.modules["claims"] = Claims()
"""
"""As cffi's libraries do: `isinstance` takes it for a module, and nothing can refer to it weakly."""


@pytest.mark.parametrize(("more", "last"), [(CLAIMS, "typing.left = open(os.devnull)"), ("", CLAIMS)])
def test_what_only_claims_to_be_a_module_is_no_trouble_at_the_end(more, last):
    assert faults(more=more, last=last) > 0


AT_EXIT = "import ctypes; ctypes.pythonapi.Py_AtExit(ctypes.CDLL(None).malloc_stats)"
"""Writes to the standard error stream after the interpreter has ended, as nanobind does."""
BOUND = 'typing.bound = type("nb_type_0", (type,), {"__module__": "nanobind"})("Attribute", (), {})'
WRITES = """
class Writes:
    def __del__(self): print("freed", end="", file=sys.stderr)
sys.modules["__main__"].here = Writes()
"""


def written(more, last=""):
    """What a fork writes to its standard error stream."""
    program = PROGRAM.format(installed=True, more=more, last=last)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("0 ")
    return ran.stderr


def test_what_a_library_reports_as_leaked_because_its_template_holds_it_is_not_in_the_log():
    assert "system bytes" in written(AT_EXIT)
    assert written(f"{AT_EXIT}\n{BOUND}") == ""


def test_what_a_script_writes_at_its_very_end_is_in_the_log():
    assert written(f"{AT_EXIT}\n{BOUND}", WRITES) == "freed"


def test_it_is_not_in_the_log_either_if_all_had_to_be_freed():
    last = "typing.left = [open(os.devnull)]; typing.left.append(typing.left)"
    assert written(f"{AT_EXIT}\n{BOUND}", last) == ""


OFFERS = """
import contextlib, sys, threading
_lock = threading.RLock()
@contextlib.contextmanager
def session():
    try:
        yield
    finally:
        with _lock:
            print("left", end="", file=sys.stderr)
"""


def test_a_context_that_a_module_never_left_ends_before_modules_are_emptied():
    """As torch does with optree: a cold interpreter frees such a generator while its module is whole."""
    last = (
        "import types\n"
        "holds, offers = types.ModuleType('holds'), types.ModuleType('offers')\n"
        "sys.modules.update(holds=holds, offers=offers)\n"
        f"exec({OFFERS!r}, vars(offers))\n"
        "holds._session = offers.session()\n"
        "holds._session.__enter__()\n"
        "typing.kept = [holds, offers]"
    )
    assert written("", last) == "left"
