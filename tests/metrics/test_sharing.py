"""Several processes share the trials: who reads what, how they agree, and that they answer as one would."""

import random
from collections import Counter

import msgspec
import pytest

from det_contracts import queries, subjects
from det_contracts.events.metrics import ShardJoined, ShardsSet
from det_contracts.events.searcher import TrialCreated
from services.kit import base64url
from services.kit.credentials import Authority
from services.kit.log import Stored
from services.kit.rules import Call
from services.kit.settings import BadSettings
from services.metrics.commands import Join, Share, join, share
from services.metrics.domain import Sharing, State, sharing_of
from services.metrics.domain.sharing import Stage
from services.metrics.queries import READS
from services.metrics.react import react
from services.metrics.settings import MetricsSettings
from services.metrics.sharing import agreement, joining
from tests.fixtures.databases import open_sqlite
from tests.fixtures.tiers import rest_in_full
from tests.metrics.conftest import Tables
from tests.metrics.world import World, lines, reports, training, validation

CALL = Call("c", 1.0)
SHARED = Sharing((Stage(3, 1, 1),), (1, 2, 3))
GROWN = Sharing((Stage(2, 100, 10), Stage(3, 200, 20)))


def shared_set(shards, trial=1, experiment=1):
    return ShardsSet(shards=shards, first_trial=trial, first_experiment=experiment, reason="set")


def joined(shard, shards):
    return ShardJoined(shard=shard, shards=shards, reason="follows")


def folded(*events):
    return World().add(*events).fold().state


def test_where_a_trial_lies_never_changes():
    assert [SHARED.shard_of_trial(id) for id in range(1, 7)] == [2, 3, 1, 2, 3, 1]
    assert [SHARED.shard_of_task(7, f"7.{name}") for name in "abcdef"] == [1, 2, 2, 1, 2, 1]


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_all_shards_get_about_as_much(shards):
    sharing = Sharing((Stage(shards, 1, 1),))
    for counts in (
        Counter(sharing.shard_of_trial(id) for id in range(1, 8001)),
        Counter(sharing.shard_of_task(id, f"{id}.0f3a") for id in range(1, 8001)),
    ):
        assert set(counts) == set(range(1, shards + 1))
        assert max(counts.values()) < 1.15 * min(counts.values())


def test_growing_moves_nothing():
    assert {GROWN.shard_of_trial(id) for id in range(1, 100)} == {1}
    before = Sharing(GROWN.stages[:1])
    assert [GROWN.shard_of_trial(id) for id in range(100, 200)] == [
        before.shard_of_trial(id) for id in range(100, 200)
    ]
    assert {GROWN.shard_of_trial(id) for id in range(200, 300)} == {1, 2, 3}
    assert {GROWN.shard_of_task(id, f"{id}.x") for id in range(1, 10)} == {1}
    assert {GROWN.shard_of_task(id, f"{id}.x") for id in range(20, 60)} == {1, 2, 3}
    assert GROWN.shard_of_task(0, "a-notebook") == 1


def test_a_smaller_number_has_no_effect_and_a_larger_one_begins_anew():
    state = folded(shared_set(2), joined(1, 2), joined(2, 2), joined(2, 2), shared_set(2, 50))
    assert sharing_of(state.sharing) == Sharing((Stage(2, 1, 1),), (1, 2))
    state = folded(shared_set(2), joined(1, 2), shared_set(3, 9, 4), joined(2, 2), joined(3, 3))
    assert sharing_of(state.sharing) == Sharing((Stage(2, 1, 1), Stage(3, 9, 4)), (3,))


def test_nothing_is_read_until_all_have_joined():
    assert not agreement.holds_streams(State(), 1)
    assert agreement.holds_streams(State(), 2)
    assert agreement.holds_streams(folded(shared_set(2), joined(2, 2)), 2)
    assert not agreement.holds_streams(folded(shared_set(2), joined(2, 2), joined(1, 2)), 2)
    assert agreement.holds_streams(folded(shared_set(2), joined(2, 2), joined(1, 2)), 3)
    waits = agreement.missing(sharing_of(folded(shared_set(2), joined(1, 2)).sharing), shards_of(2, 1))
    assert waits.endswith("missing: metrics-2")


def shards_of(shards, shard):
    return MetricsSettings(metrics_shards=shards, metrics_shard=shard)


def test_settings_that_cannot_be_are_refused():
    for shards, shard in ((0, 1), (9, 1), (2, 3), (2, 0)):
        with pytest.raises(BadSettings, match="STEADFAST_METRICS_SHARD"):
            shards_of(shards, shard)
    with pytest.raises(BadSettings, match="Set it to 3 for all of them"):
        agreement.check(SHARED, shards_of(2, 2))
    agreement.check(SHARED, shards_of(4, 2))


def test_each_step_of_the_agreement_is_recorded_once():
    state = State()
    (event,) = share(state, Share(2, 5, 3), CALL).events
    assert (event.shards, event.first_trial, event.first_experiment) == (2, 5, 3)
    assert not join(state, Join(1, 2), CALL).events
    state = folded(event)
    assert not share(state, Share(2, 9, 9), CALL).events
    (other,) = join(state, Join(2, 2), CALL).events
    assert (other.shard, other.shards) == (2, 2)
    assert not join(folded(event, other), Join(2, 2), CALL).events


def test_trials_that_are_known_stay_where_they_are(world, tables):
    with tables.database.engine.connect() as connection:
        assert agreement.first_new(connection) == (1, 1)
    world.add(
        TrialCreated(
            experiment_id=4, trial_id=17, request_id="r", task_id="t", hparams={}, seed=1, reason="asked"
        ),
        reports(training([1], loss=[1.0]), trial=21, experiment=2),
        lines("x", task="6.a"),
        lines("x", task="own", worker="w"),
    ).fold()
    tables.save(world)
    with tables.database.engine.connect() as connection:
        assert agreement.first_new(connection) == (22, 7)


def test_a_database_belongs_to_one_shard(world, tables):
    world.add(reports(training([1], loss=[1.0]))).fold()
    tables.save(world)
    with tables.database.engine.connect() as connection:
        agreement.check_database(connection, "metrics")
        with pytest.raises(BadSettings, match="of metrics-2 is the database of metrics"):
            agreement.check_database(connection, "metrics-2")


def test_messages_are_skipped_by_their_subject_and_read_by_one_shard():
    state = folded(shared_set(3))
    world = World()
    messages = [
        *(reports(training([1], loss=[1.0]), trial=id) for id in range(1, 30)),
        *(lines("x", task=f"{id}.a") for id in range(1, 30)),
        lines("x", task="own-task"),
    ]
    world.add(*messages)
    for subject in ("reports.x.metrics", "reports.", "reports.1.2.3", "logs.", f"reports.{'9' * 30}.metrics"):
        world.put(subjects.stream_of(subject), subject, b"{")
    for message in world.streams["REPORTS"] + world.streams["LOGS"]:
        readers = [shard for shard in (1, 2, 3) if not agreement.skips_message(state, message, shard)]
        assert len(readers) == 1, message.subject


def test_verdicts_on_trials_of_others_are_theirs():
    world = World().add(shared_set(3), reports(validation([5], loss=[1.0]), trial=2)).fold()
    assert SHARED.shard_of_trial(2) == 3
    assert not react(world.state, ("trials", 2), shard=1)
    assert not react(world.state, ("trials", 2), shard=2)
    (decided,) = react(world.state, ("trials", 2), shard=3)
    assert decided.steps_completed == 5


# -- answers

TRIALS = range(1, 13)
TASKS = [f"{experiment}.{name}" for experiment in (1, 2) for name in "abc"]


def story(chance):
    """What twelve trials of two experiments report and print."""
    records = [
        TrialCreated(
            experiment_id=1 + id % 2,
            trial_id=id,
            request_id=f"r{id}",
            task_id="t",
            hparams={},
            seed=1,
            reason="asked",
        )
        for id in TRIALS
    ]
    for number in range(1, 6):
        for id in TRIALS:
            steps = sorted(chance.sample(range(100 * number, 100 * number + 100), 12))
            values = {name: [chance.random() for _ in steps] for name in chance.sample("abcdef", 3)}
            at = [chance.random()]
            records.append(
                reports(
                    training(steps, **values, loss=[chance.random() for _ in steps]),
                    validation(steps[-1:], loss=at),
                    trial=id,
                    experiment=1 + id % 2,
                    number=number,
                )
            )
        records += [lines(f"{task} {number}", task=task, offset=number) for task in TASKS]
    return records


class Shards:
    """Three processes with a database each, as the front of any of them asks them."""

    def __init__(self, folder, records):
        self.databases = []
        for shard in (1, 2, 3):
            world = World()
            world.add(shared_set(3), *records)
            state = folded(shared_set(3))
            for stream in ("REPORTS", "LOGS"):
                # What is another shard's takes a position, too.
                world.streams[stream] = [
                    Stored(message.subject, message.position, b"{")
                    if agreement.skips_message(state, message, shard)
                    else message
                    for message in world.streams[stream]
                ]
            self.databases.append(Tables(open_sqlite(folder / f"{shard}.db", "metrics")))
            self.databases[-1].save(world.fold())

    def ask(self, query):
        parts = joining.split(SHARED, query)
        assert parts
        answers = [self.databases[shard - 1].ask(part) for shard, part in parts.items()]
        answer = joining.join(query, answers) if len(answers) > 1 else answers[0]
        return msgspec.json.decode(msgspec.json.encode(answer))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What one process answers, and what three answer together."""
    folder = tmp_path_factory.mktemp("shards")
    records = story(random.Random(5))
    alone = Tables(open_sqlite(folder / "alone.db", "metrics"))
    alone.save(World().add(*records).fold())
    shards = Shards(folder, records)
    yield alone.ask, shards.ask
    for tables in (alone, *shards.databases):
        tables.database.close()


IDS = [7, 3, 12, 1, 2, 5, 4, 6, 9, 3]


@pytest.mark.parametrize(
    "query",
    [
        queries.TrialSummaries(IDS),
        queries.Series(trial_ids=IDS, names=["loss", "a"], limit=20),
        queries.Series(trial_ids=IDS, names=["loss"], nearest=250),
        queries.Buckets(trial_ids=IDS, names=["loss", "b"], width=7),
        queries.BestValidation(1, smaller_is_better=True),
        queries.BestValidation(2, smaller_is_better=False),
        queries.BestValidation(9, smaller_is_better=False),
        queries.ValidationHistory(1, smaller_is_better=True),
        queries.ValidationHistory(2, smaller_is_better=False),
        queries.MetricNames([1, 2]),
        queries.MetricNames([2]),
        queries.ReportWindow(trial_id=5, offset=3, limit=20),
        queries.LogPage(task_id="2.b"),
        queries.Reports(trial_ids=IDS, group="validation"),
        queries.Reports(trial_ids=[1]),
        queries.Reports(trial_ids=[]),
    ],
    ids=lambda query: type(query).__name__,
)
def test_shards_answer_together_as_one_process_does(both, query):
    alone, shards = both
    assert shards(query) == alone(query)


def test_statistics_are_sorted_by_trial(both):
    query = queries.TrialStatistics(trial_ids=IDS, group="training", name="loss")
    alone, shards = (ask(query) for ask in both)
    assert shards == sorted(alone)
    assert len(shards) == len(set(IDS))


@pytest.mark.parametrize("limit", rest_in_full([7, 1000, 1, 100], 2))
def test_pages_of_reports_hold_each_row_once_and_in_order(both, limit):
    ids = IDS[:2] if limit == 1 else IDS

    def pages(ask):
        all_rows, after = [], None
        while True:
            page = ask(queries.Reports(trial_ids=ids, limit=limit, after=after))
            assert len(page["rows"]) <= limit
            all_rows += page["rows"]
            if not page["more"]:
                return all_rows
            last = all_rows[-1]
            after = (last["trial_id"], last["run"], last["steps_completed"], last["id"])

    alone, shards = map(pages, both)
    assert shards == alone
    assert len(alone) > 100


def test_pages_of_steps_hold_each_step_once(both, monkeypatch):
    monkeypatch.setattr(joining, "STEPS_PER_PAGE", 30)
    monkeypatch.setattr("services.metrics.reports.curves.STEPS_PER_PAGE", 30)

    def pages(ask):
        steps, more = [], True
        while more:
            last = steps[-1] if steps else -1
            page = ask(queries.ReportedSteps(experiment_id=1, group="training", metric="a", after=last))
            assert len(page["steps"]) <= 30
            steps, more = steps + page["steps"], page["more"]
        return steps

    alone, shards = map(pages, both)
    assert shards == alone == sorted(set(alone))
    assert len(alone) > 90


def test_merged_pages_end_where_an_incomplete_part_ends():
    def rows(*places):
        return [{"trial_id": id, "run": 1, "steps_completed": step, "id": step} for id, step in places]

    # The next row of the first is so large that its page ended before it.
    parts = [{"rows": rows((1, 1)), "more": True}, {"rows": rows((2, 1), (4, 1)), "more": False}]
    merged = joining.join(queries.Reports(trial_ids=[1, 2, 4]), parts)
    assert merged == {"rows": rows((1, 1)), "more": True}
    parts = [{"steps": [1, 5], "more": True}, {"steps": [2, 5, 7], "more": False}]
    merged = joining.join(queries.ReportedSteps(experiment_id=1, group="g", metric="m"), parts)
    assert merged == {"steps": [1, 2, 5], "more": True}


def test_lines_of_all_shards_count_for_retention(both):
    alone, shards = (ask(queries.StoredLines(before=3.0, now=10.0)) for ask in both)
    assert alone["first_young"] is not None
    assert shards["first_young"] == 1
    assert shards["bytes"] > 0
    _, shards = (ask(queries.StoredLines(before=7.0, now=10.0)) for ask in both)
    assert shards["first_young"] is None


def test_every_query_of_the_tables_is_divided_and_joined():
    single = {queries.ReportWindow, queries.LogPage, queries.LogFields, queries.LogCause}
    assert set(joining._JOINS) == set(READS) - single


def test_only_the_first_shard_may_say_how_many_there_are():
    def may_publish(owner):
        token = Authority.create().service(owner).splitlines()[1].split(".")[1]
        return msgspec.json.decode(base64url.decode(token))["nats"]["pub"]["allow"]

    own = {subject for subject in may_publish("metrics-2") if subject.startswith(("control.", "$KV"))}
    assert own == {
        "control.metrics-2.>",
        "control.metrics.trial.>",
        "control.metrics.shard.2.joined",
        "control.metrics.database.metrics-2.copied",
        "$KV.leases.metrics-2",
    }
    assert "control.metrics.>" in may_publish("metrics")
