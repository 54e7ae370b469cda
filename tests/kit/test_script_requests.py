"""What scripts ask: answered at once or when something moves, each in its own name, and thousands at a
time."""

import asyncio
import time

import msgspec
import pytest

from det_contracts import subjects
from det_contracts.commands import Answer
from det_contracts.problems import not_found
from det_contracts.script_queries import AskLeave, AskOperations, AskRefusals, Leave, Operations, Refusals
from services.kit import script_requests
from services.kit.bus import BusServer
from services.kit.script_requests import RecordWaiters, serve_scripts
from services.metrics.domain import State as Reported
from services.metrics.domain.state import Refusal
from services.metrics.domain.state import Trial as Reporting
from services.metrics.script_answers import unseen_refusals
from services.scheduler.domain import Allocation
from services.scheduler.domain import State as Scheduled
from services.scheduler.script_answers import leave_answer
from services.searcher.domain import State as Searched
from services.searcher.domain import Trial
from services.searcher.script_answers import new_operations


class Saver:
    """Tells of what is folded."""

    def watch(self, on_changed, on_reload):
        self.fold, self.reload = on_changed, on_reload


@pytest.fixture
def saver():
    return Saver()


def test_who_waits_is_answered_when_the_record_moves_and_looked_after_then_only(saver):
    async def story():
        news, looks, answers = RecordWaiters(saver), [], {}

        def say(id):
            looks.append(id)
            return answers.get(id)

        def wait(id):
            return asyncio.ensure_future(news.wait_until(("trials", id), lambda: say(id), 20))

        waiting = {id: wait(id) for id in (1, 2)}
        await asyncio.sleep(0)
        assert (looks, len(news)) == ([1, 2], 2)
        saver.fold({("trials", 3), ("experiments", 1)})
        saver.fold({("trials", 1)})
        await asyncio.sleep(0.01)
        assert looks == [1, 2, 1]
        answers[1] = "news"
        saver.fold({("trials", 1), ("trials", 9)})
        assert await waiting[1] == "news"
        assert not waiting[2].done()
        waiting[2].cancel()
        await asyncio.gather(waiting[2], return_exceptions=True)
        assert (len(news), dict(news._waiting)) == (0, {})

    asyncio.run(story())


@pytest.mark.parametrize("also", [[], [50, 51, 52]])
def test_who_came_first_for_a_record_is_looked_after_first(saver, also):
    """Also where more records moved than are waited for: never in the order of a set."""

    async def story():
        news, ready, looked = RecordWaiters(saver), False, []

        def wait(id, rank):
            def say():
                if ready:
                    looked.append((id, rank))
                return ready or None

            return asyncio.ensure_future(news.wait_until(("trials", id), say, 20))

        came, moved = (4, 19, 7, 3), (19, 3, 4)
        waiting = {(id, rank): wait(id, rank) for rank in range(20) for id in came}
        await asyncio.sleep(0)
        ready = True
        saver.fold({("trials", id): None for id in (*moved, *also)})
        await asyncio.gather(*(waiter for (id, _), waiter in waiting.items() if id in moved))
        order = (4, 19, 3) if also else moved
        assert looked == [(id, rank) for id in order for rank in range(20)]
        for waiter in waiting.values():
            waiter.cancel()
        await asyncio.gather(*waiting.values(), return_exceptions=True)

    asyncio.run(story())


def test_nothing_new_is_said_when_the_time_is_up_and_no_later_than_the_longest(saver, monkeypatch):
    monkeypatch.setattr(script_requests, "WAIT_S", 0.01)

    async def story():
        news = RecordWaiters(saver)
        assert await news.wait_until(("trials", 1), lambda: None, 10**9) is None
        assert await news.wait_until(("trials", 1), lambda: None, -5) is None
        assert dict(news._waiting) == {}

    asyncio.run(story())


def test_who_asks_without_end_for_one_trial_waits_in_few_places(saver):
    async def story():
        news = RecordWaiters(saver)
        waiting = [
            asyncio.ensure_future(news.wait_until(("trials", 1), lambda: None, 20))
            for _ in range(script_requests.MAX_PER_TRIAL + 5)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert len(news) == script_requests.MAX_PER_TRIAL
        assert sum(waiter.done() for waiter in waiting) == 5
        for waiter in waiting:
            waiter.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(story())


def test_all_look_again_after_a_reload(saver):
    """The record may be paged out since: no key of the new state would tell of it."""

    async def story():
        news, answers = RecordWaiters(saver), []
        waiting = asyncio.ensure_future(
            news.wait_until(("trials", 1), lambda: answers[0] if answers else None, 20)
        )
        await asyncio.sleep(0)
        answers.append("news")
        saver.reload()
        assert await waiting == "news"

    asyncio.run(story())


def trial(**more):
    defaults = {"id": 7, "experiment_id": 1, "request_id": "r", "task_id": "1.r", "seed": 1, "run": 2}
    return Searched(trials={7: Trial(hparams={}, **defaults | more)})


def test_the_searcher_says_what_was_not_seen_to_the_present_run_alone():
    state = trial(seq=3, announced_seq=3, length=30, idled_seq=2)
    whole = Operations(3, 30, 2)
    assert new_operations(state, 7, AskOperations(2)) == whole
    assert new_operations(state, 7, AskOperations(2, whole)) is None
    assert new_operations(state, 7, AskOperations(2, Operations(2, 20, 1))) == whole
    # A replica that is behind says nothing older than what was seen, nor of a run that it does not know.
    assert new_operations(state, 7, AskOperations(2, Operations(4, 40, 2))) is None
    assert new_operations(state, 7, AskOperations(3)) is None
    assert new_operations(state, 8, AskOperations(2)) is None
    assert new_operations(state, 7, AskOperations(1, Operations(1, 10))) == Operations(over=True)
    assert new_operations(state, 7, AskOperations(1, Operations(over=True))) is None


def test_an_operation_that_is_on_its_way_is_waited_for():
    state = trial(seq=4, announced_seq=3, length=40, idled_seq=2)
    assert new_operations(state, 7, AskOperations(2, Operations(2, 20, 2))) is None


def test_the_scheduler_answers_about_allocations_of_the_asking_trial_alone():
    def state(**more):
        allocation = Allocation(
            id="1.r.1",
            task_id="1.r",
            kind="TRIAL",
            experiment_id=1,
            trial_id=7,
            run=1,
            slots=0,
            pool="p",
            requested_at=0,
            requested=1,
            **more,
        )
        scheduled = Scheduled()
        scheduled.allocations[allocation.id] = allocation
        return scheduled

    asking = AskLeave("1.r.1")
    assert leave_answer(state(), 7, asking) == Leave(False)
    assert leave_answer(state(), 7, AskLeave("1.r.1", Leave())) is None
    assert leave_answer(state(asked_to_leave=True), 7, AskLeave("1.r.1", Leave())) == Leave(True)
    assert leave_answer(state(asked_to_leave=True), 7, AskLeave("1.r.1", Leave(True))) is None
    assert leave_answer(state(asked_to_leave=True), 8, asking) is None
    assert leave_answer(state(), 7, AskLeave("1.r.2")) is None


def test_metrics_says_which_reports_of_the_run_were_refused():
    refusals = tuple(Refusal(n, "no", n, run, f"refused {n}") for n, run in ((1, 1), (2, 2), (5, 2)))
    state = Reported(trials={7: Reporting(id=7, refusals=refusals)})
    assert unseen_refusals(state, 7, AskRefusals(2)) == Refusals(5, ("refused 2", "refused 5"))
    assert unseen_refusals(state, 7, AskRefusals(2, Refusals(2))) == Refusals(5, ("refused 5",))
    assert unseen_refusals(state, 7, AskRefusals(2, Refusals(5))) is None
    assert unseen_refusals(state, 7, AskRefusals(2, Refusals())) == Refusals(5, ("refused 2", "refused 5"))
    assert unseen_refusals(state, 7, AskRefusals(3, Refusals())) is None
    assert unseen_refusals(state, 7, AskRefusals(3)) == Refusals()
    assert unseen_refusals(state, 8, AskRefusals(2)) == Refusals()


@pytest.mark.live
@pytest.mark.timeout(120)
def test_five_thousand_wait_and_all_are_answered(broker):
    """Each in its own name, whatever the body says."""
    count = 5000

    async def story():
        saver, stored = Saver(), {}
        service = await broker.connect()
        news = RecordWaiters(saver)
        bus_server = BusServer(service, "searcher")

        async def say(trial_id, ask):
            if trial_id == 0:
                raise not_found("trial", trial_id)
            return await news.wait_until(("trials", trial_id), lambda: stored.get(trial_id), 20)

        await serve_scripts(bus_server, {AskOperations: say})
        script = await broker.connect()
        body = msgspec.json.encode(AskOperations(1))

        async def ask(trial_id):
            subject = subjects.question_of_trial(trial_id, "searcher", "news")
            return msgspec.json.decode((await script.request(subject, body, timeout=100)).data, type=Answer)

        waiting = [asyncio.ensure_future(ask(id)) for id in range(1, count + 1)]
        async with asyncio.timeout(60):
            while len(news) < count:
                await asyncio.sleep(0.02)
        stored.update((id, id) for id in range(1, count + 1))
        began = time.perf_counter()
        for id in range(1, count + 1):
            saver.fold({("trials", id)})
        answers = await asyncio.gather(*waiting)
        print(f"{count} waiting requests answered in {time.perf_counter() - began:.2f} s")
        assert [answer.value for answer in answers] == list(range(1, count + 1))
        assert len(news) == 0
        assert (await ask("x")).problem.code == "not_found"
        await script.close()
        await service.close()

    asyncio.run(story())
