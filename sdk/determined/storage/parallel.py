"""Runs many small jobs in a few threads."""

import threading
from collections.abc import Callable, Iterable

Job = Callable[[], object]


def run_all(jobs: Iterable[Job], threads: int) -> None:
    """Run all jobs. After a failure no new job starts; the error is raised once the running jobs have ended.

    Uses plain threads, because an executor refuses work while the interpreter is exiting, and a checkpoint
    may still be uploading then.
    """
    waiting, lock = iter(jobs), threading.Lock()
    failures: list[BaseException] = []

    def work() -> None:
        while not failures:
            try:
                with lock:
                    job = next(waiting, None)
                if job is None:
                    return
                job()
            except BaseException as error:
                failures.append(error)

    team = [threading.Thread(target=work, name="determined-transfer") for _ in range(threads)]
    for member in team:
        member.start()
    try:
        for member in team:
            member.join()
    except BaseException as interrupted:
        failures.append(interrupted)
        for member in team:
            member.join()
    if failures:
        raise failures[0]
