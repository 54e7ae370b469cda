"""Programs that are started by a task that is cancelled."""

import asyncio

import pytest

from services.kit import subprocesses


@pytest.mark.parametrize("steps", range(12))
def test_cancelled_at_any_step_it_ends_and_leaves_no_program(steps, tmp_path):
    started = []
    create = asyncio.create_subprocess_exec

    async def noted(*command, **options):
        process = await create(*command, **options)
        started.append(process)
        return process

    async def live():
        pipe = asyncio.subprocess.PIPE
        work = asyncio.ensure_future(subprocesses.start("sleep", "600", stdout=pipe, stderr=pipe))
        for _ in range(steps):
            await asyncio.sleep(0)
        work.cancel()
        try:
            async with asyncio.timeout(60):
                process = await work
        except asyncio.CancelledError:
            return
        # It was there before it was cancelled.
        process.kill()
        await process.communicate()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "create_subprocess_exec", noted)
        asyncio.run(live())
    assert all(process.returncode == -9 for process in started)


def test_what_cannot_be_started_is_an_error():
    with pytest.raises(FileNotFoundError):
        asyncio.run(subprocesses.start("there-is-no-such-program"))
