"""What the queue of a pool costs: so much for each job, however many agents and jobs there are besides."""

import pytest

from services.scheduler.policy.book import book_of
from services.scheduler.policy.explain import Explainer
from services.scheduler.policy.records import Agent, PoolSettings, Request, Running, Share
from tests.walks.counting import Meter


def pool_of(size, kind):
    """As many full agents as waiting jobs."""
    agents = [Agent(id=f"a{n}", slots=1) for n in range(size)]
    running = [
        Running(Request(allocation_id=f"r{n}", job_id=f"r{n}", group=f"r{n}", slots=1), (Share(f"a{n}", 1),))
        for n in range(size)
    ]
    waiting = [
        Request(allocation_id=f"w{n}", job_id=f"w{n}", group=f"w{n}", slots=1, requested_at=n)
        for n in range(size)
    ]
    return book_of(PoolSettings(type=kind), agents=agents, running=running, waiting=waiting)


def steps(size, kind):
    """Lines that run to say of each job why it waits."""
    book = pool_of(size, kind)
    with Meter().counting() as meter:
        explainer = Explainer(book)
        sentences = [explainer.why(id) for id in book.waiting]
    assert all(sentences)
    return meter.steps


@pytest.mark.parametrize("kind", ["fair_share", "priority", "round_robin"])
def test_why_all_jobs_wait_costs_in_proportion_to_the_jobs(kind):
    assert steps(200, kind) < 14 * steps(20, kind)
