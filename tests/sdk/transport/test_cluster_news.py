"""What a script asks the cluster for while it runs, and how often."""

import asyncio

import msgspec

from det_contracts.commands import Answer
from det_contracts.script_queries import AskRefusals, Refusals
from determined.transport.cluster_news import ClusterNews


class Cluster:
    """Answers the first question for refusals with one, and waits with the others."""

    def __init__(self):
        self.questions = []

    async def wait_for_news(self, subject, body, *_):
        assert subject == "ask.trial.7.metrics.news"
        self.questions.append(msgspec.json.decode(body, type=AskRefusals))
        if len(self.questions) > 1:
            await asyncio.Event().wait()
        return msgspec.json.encode(Answer(value=Refusals(3, ("the third",))))


def test_a_script_waits_for_refusals_from_the_first_question_on():
    cluster = Cluster()
    news = ClusterNews(cluster, 7, 2, "7.t.2")

    async def listen():
        listening = asyncio.create_task(news._hear_refusals())
        async with asyncio.timeout(60):
            while len(cluster.questions) < 2:
                await asyncio.sleep(0)
        listening.cancel()

    asyncio.run(listen())
    # Without anything seen, the answer would come at once and say that there is none.
    assert [(question.run, question.seen.newest) for question in cluster.questions] == [(2, 0), (2, 3)]
    assert list(news.refusals) == ["the third"]
