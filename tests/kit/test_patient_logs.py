"""A line of the log that finds no room ends nobody."""

import subprocess
import sys

SCRIPT = """
import sys
from services.kit import logging, process
import structlog
logging.configure({form!r}, "INFO", service="it")
for size in (1, 100_000):
    structlog.get_logger().warning("disk.full", text="x" * size)
print("went on", flush=True)
process.exit_now(3)
"""


def test_on_a_full_disk_lines_are_lost_and_the_process_goes_on():
    for form in ("json", "console"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT.format(form=form)],
                stdout=subprocess.PIPE,
                stderr=full,
                text=True,
                check=False,
            )
        assert (done.returncode, done.stdout) == (3, "went on\n")
