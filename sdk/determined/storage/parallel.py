"""A few threads that work through many small jobs."""

import threading
from collections.abc import Callable, Iterable

Job = Callable[[], object]


def run_all(jobs: Iterable[Job], threads: int) -> None:
    """Run all jobs; a failure is raised when those under way are over, and no other is begun.

    Plain threads, not an executor: that refuses work when the interpreter is ending, while a checkpoint may
    still be on its way.
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
