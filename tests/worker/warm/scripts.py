"""What the conformance suite runs: each prints facts that must be the same after a cold and a warm start."""

FACTS = """
import __main__, gc, locale, os, resource, signal, subprocess, sys, threading
print({k: repr(v) for k, v in sorted(vars(__main__).items()) if k.startswith("__") and k != "__builtins__"})
print(__name__, __file__, sys.argv, sys.orig_argv, sys.path, sys.executable, sys.prefix, sys.flags)
print(sys.warnoptions, sys._xoptions, sys.dont_write_bytecode, sys.getrecursionlimit(), sys.hash_info)
print(os.getcwd(), sorted(os.environ.items()))
print(subprocess.run("env | sort", shell=True, capture_output=True, text=True).stdout)
print([(n, signal.getsignal(n)) for n in sorted(signal.valid_signals())], signal.pthread_sigmask(0, ()))
print(os.umask(0o22), [resource.getrlimit(n) for n in range(16)], os.nice(0), os.sched_getaffinity(0))
print([os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (0, 1, 2)])
def link(fd):
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return "that of the list"
print([(fd, link(fd).partition(":")[0]) for fd in sorted(os.listdir("/proc/self/fd"))])
print(len(os.listdir("/proc/self/task")))
print(subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True).stdout)
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream, stream.encoding, stream.errors, stream.line_buffering, stream.write_through, stream.mode)
    print(type(stream.buffer), stream.seekable(), stream.isatty(), stream.buffer.closed, stream.newlines)
print(sys.excepthook, sys.displayhook, threading.excepthook, sys.gettrace(), sys.getprofile())
print(gc.isenabled(), gc.get_threshold(), locale.setlocale(locale.LC_ALL), locale.getpreferredencoding())
print(open("/proc/self/comm").read(), open("/proc/self/cmdline").read().split(chr(0)))
print(sorted(open("/proc/self/environ").read().split(chr(0))))
print(threading.current_thread() is threading.main_thread(), threading.main_thread().native_id == os.getpid())
print(sorted(n for n in sys.modules if n.split(".")[0] in ("worker", "sitecustomize", "runpy", "services")))
print(__builtins__.__name__, sys.stdin.read())
"""
STACKS = """
import faulthandler, inspect, logging, re, sys, threading, traceback, warnings
traceback.print_stack()
print([(f.filename, f.lineno, f.function) for f in inspect.stack()], sys._getframe().f_back)
warnings.warn("deep", stacklevel=1)
warnings.warn("deeper", stacklevel=9)
logging.warning("with stack", stack_info=True)
def inside():
    raise ValueError("in a thread")
thread = threading.Thread(target=inside, name="other")
thread.start(); thread.join()
class Noisy:
    def __del__(self):
        raise OSError("unraisable")
noisy = Noisy(); del noisy
1 / 0
"""
PRINTS_WHEN_FREED = """
import sys
class Left:
    def __init__(self, name): self.name = name
    def __del__(self): print("freed", self.name, flush=True)
"""
ENDS = {
    "nothing": "print('done', end='')",
    "exit 3": "import sys; sys.exit(3)",
    "exit text": "import sys; sys.exit('the reason')",
    "exit none": "import sys; sys.exit(None)",
    "exit in a thread": "import sys, threading; threading.Thread(target=sys.exit, args=(4,)).start()",
    "os._exit": "import os; print('left', end='', flush=True); os._exit(7)",
    "interrupt": "raise KeyboardInterrupt",
    "sigint": "import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(60)",
    "sigterm": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "segmentation": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "import os; os.abort()",
    "attribute": "object().nothing",
    "stop": "next(iter(()))",
    "generator": "raise GeneratorExit",
    "chained": "try:\n    1 / 0\nexcept ArithmeticError as error:\n    raise KeyError('no') from error",
    "group": "raise ExceptionGroup('both', [ValueError(1), TypeError(2)])",
    "syntax": "print('never')\nfor\n",
    "tabs": "if True:\n\tpass\n        pass\n",
    "coding": "# coding: latin-1\nprint('a', __doc__)\n",
    "atexit": "import atexit\nfor n in range(3):\n    atexit.register(print, n)\n"
    "atexit.register(lambda: 1 / 0)\n",
    "hook": "import sys\nsys.excepthook = lambda *a: print('mine', a[0], a[2].tb_frame.f_back)\n[][1]",
    "late thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()\nprint('main')",
    "left over": "import subprocess\nsubprocess.Popen(['sleep', '1000'])",
    "daemon": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\n",
    "fork": "import os, sys\npid = os.fork()\nif pid == 0:\n    sys.exit(5)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",  # noqa: E501
    "held by sys": f"{PRINTS_WHEN_FREED}sys.left = Left('sys')",
    "held by builtins": f"{PRINTS_WHEN_FREED}import builtins\nbuiltins.left = Left('builtins')",
    "closed output": "import os, sys\nsys.stdout.reconfigure(write_through=False, line_buffering=False)\n"
    "print('lost')\nos.close(1)",
    "own output": "import sys\nclass Out:\n    def write(self, text): pass\n    def flush(self): 1 / 0\n"
    "sys.stdout = Out()",
    "collections": "import gc\ngc.callbacks.append(lambda phase, info: print(phase, info['generation']))",
    "two modules": f"{PRINTS_WHEN_FREED}import types\nfor name in ('first', 'second'):\n"
    "    made = sys.modules[name] = types.ModuleType(name)\n    made.left = Left(name)\n"
    "del made\nleft = Left('main')",
    "broken pipe": "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')",
}
PROCESSES = """
import multiprocessing, os, sys
def work(n):
    return n * n, __name__ == "__mp_main__", sys.argv, os.getcwd(), multiprocessing.current_process().name
class Own:
    pass
def own(_):
    return type(Own()).__module__, multiprocessing.parent_process() is not None
if __name__ == "__main__":
    print(multiprocessing.get_start_method(), multiprocessing.current_process())
    print(multiprocessing.parent_process())
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(method, pool.map(work, [3]), pool.map(own, [0]))
        process = context.Process(target=sys.exit, args=(6,))
        process.start(); process.join()
        print(process.exitcode, len(context.current_process().authkey))
"""
SEEDED = """
import random, sys
random.seed(1); print(random.random(), hash("text") if sys.flags.hash_randomization else "fixed")
import numpy
print(numpy.random.default_rng(3).random(), numpy.random.RandomState(4).rand())
numpy.random.seed(2); print(numpy.random.rand(), numpy.random.get_state()[0])
square = numpy.random.rand(200, 200)
print(repr((square @ square).sum()), repr(numpy.linalg.inv(square).sum()))
print(repr(numpy.linalg.svd(square)[1].sum()))
"""
CHANCE = """
import random, secrets, uuid, tempfile, multiprocessing, sys
import numpy, torch
for value in (
    random.random(), uuid.uuid4(), secrets.token_hex(8), next(tempfile._get_candidate_names()),
    multiprocessing.current_process().authkey.hex(),
    numpy.random.rand(), numpy.random.default_rng().random(),
    torch.rand(1), torch.initial_seed(), torch.randperm(100).tolist(),
):
    print(value)
"""
TORCH = """
import os, random, numpy, torch
import torch.utils.data
print(torch.get_num_threads(), torch.get_num_interop_threads(), torch.cuda.is_available())
random.seed(0); numpy.random.seed(0); torch.manual_seed(0)
class Set(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.rand(4) + i, os.getcwd()
model = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for workers in (0, 2):
    for batch, where in torch.utils.data.DataLoader(Set(), batch_size=16, shuffle=True, num_workers=workers):
        loss = model(batch).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        print(repr(loss.item()), set(where))
print([p.sum().item().hex() for p in model.parameters()], torch.svd(torch.rand(64, 64))[1].sum().item().hex())
print(torch._dynamo.config.debug_dir_root)
"""

LEFT = """
import os, sys, determined, determined.core
def file(name):
    made = open(os.path.join(os.environ["DET_INFO_DIR"], name), "w")
    made.write("whole")
    return made
class Left:
    def __init__(self, name): self.name = name
    def __del__(self): print("freed", self.name, file is not None, os is not None, flush=True)
own, freed = file("own"), Left("own")
"""
"""Leaves a file unclosed, and something that prints when it is freed."""
WITHIN = {
    "its own": "",
    "an exception": "raise ValueError",
    "a package": "determined.file, determined.freed = file('more'), Left('more')",
    "a class of a package": "determined.core.Context.file = file('more')",
    "a cycle in a package": "determined.both = [file('more')]; determined.both.append(determined.both)",
    "an open connection": "import socket; determined.pair = socket.socketpair(), file('more')",
}
"""Where else the script leaves some."""
