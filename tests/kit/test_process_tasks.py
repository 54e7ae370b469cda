"""What a process that gives up says about its tasks."""

import asyncio

from services.kit.process import _task_stacks


async def innermost():
    await asyncio.Event().wait()


async def outermost():
    await innermost()


def test_a_task_is_shown_down_to_what_it_waits_for():
    async def work():
        task = asyncio.create_task(outermost(), name="stuck")
        await asyncio.sleep(0)
        (output,) = [stack for stack in _task_stacks() if stack.startswith("stuck: ")]
        task.cancel()
        return output

    output = asyncio.run(work())
    places = [place.rpartition(" ")[2] for place in output.removeprefix("stuck: ").split(" > ")]
    assert places == ["outermost", "innermost", "wait"]


def test_a_task_that_has_not_begun_has_a_place():
    async def work():
        task = asyncio.create_task(innermost(), name="new")
        (stack,) = [stack for stack in _task_stacks() if stack.startswith("new: ")]
        task.cancel()
        return stack

    assert asyncio.run(work()).endswith(" innermost")
