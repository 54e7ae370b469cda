"""What is remembered of trials comes and goes: whoever pages, however far behind, has the fold from zero."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from det_contracts import codec, subjects
from det_contracts.events import metrics, searcher
from det_contracts.reports import LogBatch, ReportBatch
from services.kit.database import POSITIONS, SNAPSHOTS
from services.kit.log import Draft
from services.kit.log_memory import MemoryLog
from services.kit.records import read_event
from services.kit.roots import get_loaded
from services.kit.runner import Runner
from services.kit.snapshot_store import DatabaseSaver
from services.metrics.app import RULES
from services.metrics.domain import State
from tests.fixtures.databases import open_sqlite
from tests.fixtures.paging import GatedLog, page_early, running
from tests.fixtures.waiting import until
from tests.metrics.world import lines, reports, validation

TRIALS, EXPERIMENTS = 12, 4
STREAMS = (subjects.CONTROL, subjects.REPORTS, subjects.LOGS)


class Replica:
    def __init__(self, database, log, leads, roots=RULES.roots):
        self.leads = leads
        self.saver = DatabaseSaver(database, "metrics", State, is_leader=lambda: self.leads, roots=roots)
        self.runner = Runner(RULES, log, self.saver, is_leader=lambda: self.leads)

    @property
    def state(self):
        return self.runner.state


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    page_early(monkeypatch)


@pytest.fixture
def database(tmp_path):
    metrics_database = open_sqlite(tmp_path / "metrics.db", "metrics")
    yield metrics_database
    metrics_database.close()


def experiment_of(trial):
    return 1 + trial % EXPERIMENTS


def of_trial(trial, what, number):
    experiment = experiment_of(trial)
    match what:
        case "report":
            validation_series = validation([number], loss=[number / 7])
            return reports(validation_series, trial=trial, experiment=experiment, number=number)
        case "again":
            return reports(validation([1], loss=[0.5]), trial=trial, experiment=experiment, number=0)
        case "lines":
            return lines("a line", task=f"{experiment}.t{trial}", offset=number)
        case "own lines":
            return lines("a line", task=f"shell-{trial}", offset=number)
        case "ended":
            return searcher.TrialEnded(trial_id=trial, state="COMPLETED", restarts=0, reason="")
        case "settled":
            return metrics.Settled(trial_id=trial, reason="all is judged")
        case "deleted":
            all = tuple(
                trial_id for trial_id in range(1, TRIALS + 1) if experiment_of(trial_id) == experiment
            )
            return searcher.TrialsDeleted(
                experiment, all, tuple(f"{experiment}.t{trial_id}" for trial_id in all), ""
            )
        case "deleted at once":
            all = tuple(
                trial_id for trial_id in range(1, TRIALS + 1) if experiment_of(trial_id) == experiment
            )
            return searcher.ExperimentDeleted(experiment, "DELETED", "", all)


async def append(log, record, number):
    if isinstance(record, ReportBatch | LogBatch):
        kind = (
            subjects.reports(record.trial_id)
            if isinstance(record, ReportBatch)
            else subjects.logs(record.task_id)
        )
        await log.append(Draft(kind, msgspec.json.encode(record), f"m{number}"))
    else:
        body = codec.encode(record, id=f"m{number}", actor="t", at=0.0)
        await log.append(Draft(codec.subject_of(record), body, f"m{number}"))


async def at_rest(log, *replicas, streams=STREAMS):
    """Until these have folded all of some streams, and nothing is decided any more."""

    def still():
        ends = {stream: len(log.streams[stream]) for stream in streams}
        return all(
            replica.runner.positions[stream] == end for replica in replicas for stream, end in ends.items()
        )

    for _ in range(5):
        await until(still)
        await asyncio.sleep(0.002)


async def saved(log, leader):
    await leader.saver.wait_for_position(leader.runner.positions[subjects.CONTROL])


def from_zero(log):
    state = State()
    for stream in STREAMS:
        read = RULES.decode.get(stream, read_event)
        for message in log.streams[stream]:
            tuple(RULES.evolve(state, read(message, stream)))
    return state


def look_at(state, right):
    """Every record, loaded as a rule would load it; and what the indexes say of what is loaded."""
    for table in ("trials", "groups", "findings", "ended", "settled", "dropped", "sources", "gone"):
        for id in {*getattr(right, table), *dict(getattr(state, table))}:
            assert getattr(state, table).get(id) == getattr(right, table).get(id), (table, id)
        assert dict(getattr(state, table)) == dict(getattr(right, table))
    assert list(state.groups_of) == list(right.groups_of)
    assert list(state.sources_of) == list(right.sources_of)


WHAT = st.sampled_from(
    [*["report", "lines"] * 3, "again", "own lines", *["ended", "settled"] * 3, "deleted", "deleted at once"]
)
STEPS = st.lists(st.tuples(st.integers(1, TRIALS), WHAT), max_size=60)


@given(STEPS, STEPS, STEPS, st.sets(st.sampled_from(STREAMS), min_size=1))
@settings(max_examples=10, deadline=None)
def test_a_follower_behind_in_some_streams_ends_with_the_fold_from_zero(
    tmp_path_factory, before, behind, after, shut
):
    async def work(database):
        log, numbers = MemoryLog(), iter(range(1, 1_000))
        gated = GatedLog(log, *STREAMS)
        leader, follower = Replica(database, log, leads=True), Replica(database, gated, leads=False)

        async def lived(steps):
            for trial, what in steps:
                number = next(numbers)
                await append(log, of_trial(trial, what, number), number)
                await asyncio.sleep(0)

        async with running(leader, follower):
            await lived(before)
            await at_rest(log, leader, follower)
            gated.shut(*shut)
            await lived(behind)
            await at_rest(log, leader)
            await saved(log, leader)
            await at_rest(log, follower, streams=set(STREAMS) - shut)
            gated.open(*STREAMS)
            await lived(after)
            await at_rest(log, leader, follower)
            right = from_zero(log)
            look_at(leader.state, right)
            look_at(follower.state, right)
            await saved(log, leader)
            leader.leads, follower.leads = False, True
            follower.runner.on_leadership_change()
            await lived([(1, "report"), (2, "lines"), (3, "ended")])
            await at_rest(log, leader, follower)
            await saved(log, follower)
            fresh = Replica(database, log, leads=False)
            async with running(fresh):
                await at_rest(log, fresh)
                right = from_zero(log)
                for replica in (leader, follower, fresh):
                    look_at(replica.state, right)

    database = open_sqlite(tmp_path_factory.mktemp("paged") / "metrics.db", "metrics")
    try:
        asyncio.run(work(database))
    finally:
        database.close()


async def some_trials(log, count):
    """So many trials that have reported, written lines and ended; all of it is judged."""
    for trial in range(1, count + 1):
        for place, what in enumerate(("report", "lines", "ended", "settled")):
            await append(log, of_trial(trial, what, trial), 10 * trial + place)


async def others_go_on(log, leader):
    """Another trial writes for so long that those with which nothing happens leave memory."""
    for number in range(600, 640):
        await append(log, of_trial(TRIALS + 10 * EXPERIMENTS + 1, "own lines", number), number)
        await at_rest(log, leader)
        await saved(log, leader)


@asynccontextmanager
async def leading(database):
    """A log with some trials, and a replica that leads and reads it."""
    log = MemoryLog()
    leader = Replica(database, log, leads=True)
    async with running(leader):
        await some_trials(log, TRIALS)
        yield log, leader


def test_what_is_settled_leaves_and_a_start_leaves_it_where_it_is(database):
    async def work():
        async with leading(database) as (log, leader):
            await append(log, of_trial(TRIALS + 1, "report", 1), 1_000)
            await at_rest(log, leader)
            await saved(log, leader)
            await append(log, of_trial(TRIALS + 1, "report", 2), 1_001)
            await at_rest(log, leader)
            await saved(log, leader)
            assert get_loaded(leader.state.trials, 1) is None
            # Who lives on stays, however little room there is.
            assert get_loaded(leader.state.trials, TRIALS + 1) is not None
        fresh = Replica(database, log, leads=False)
        async with running(fresh):
            await at_rest(log, fresh)
            assert get_loaded(fresh.state.trials, 1) is None
            assert fresh.runner.pager.roots_loaded == 0
            look_at(fresh.state, from_zero(log))

    asyncio.run(work())


def test_decisions_that_come_after_a_trial_was_deleted_leave_memory(database):
    """They do not say which experiment they are about, and what was deleted has no record that says so."""

    async def work():
        async with leading(database) as (log, leader):
            for trial in (1, 2):
                await append(log, of_trial(trial, "deleted at once", 0), 500 + trial)
            late = metrics.Validated(
                trial_id=1, number=7, run=1, steps_completed=1, metric=0.5, reported_at=0.0
            )
            await append(log, late, 510)
            await append(log, metrics.PointsDropped(trial_id=2, through=1, reason="old"), 511)
            await at_rest(log, leader)
            await saved(log, leader)
            await others_go_on(log, leader)
            assert get_loaded(leader.state.trials, 1) is None
            assert get_loaded(leader.state.dropped, 2) is None
            look_at(leader.state, from_zero(log))

    asyncio.run(work())


def test_what_a_release_has_saved_that_pages_nothing_is_found_under_its_root(database):
    """Rows without roots, some beside others that have theirs and are away: as after going back once."""

    async def work():
        log = MemoryLog()
        before = Replica(database, log, leads=True, roots=None)
        async with running(before):
            await some_trials(log, TRIALS)
            await at_rest(log, before)
            await saved(log, before)
        with database.engine.begin() as connection:
            c = SNAPSHOTS.c
            connection.execute(
                sa.update(SNAPSHOTS).where(c.kind == "trials", c.id == "1").values(root="1", away=1)
            )
            assert connection.scalar(sa.select(sa.func.count()).where(c.kind == "groups", c.root.is_(None)))
        this = Replica(database, log, leads=True)
        async with running(this):
            await at_rest(log, this)
            await saved(log, this)
            for number in (1, 2, 3):
                await append(log, of_trial(TRIALS + 1, "report", number), 1_000 + number)
                await at_rest(log, this)
                await saved(log, this)
            assert get_loaded(this.state.trials, 1) is None
            look_at(this.state, from_zero(log))
        with database.engine.begin() as connection:
            kinds = list(RULES.roots.root_lookups)
            keys_without_root = sa.select(sa.func.count()).where(
                SNAPSHOTS.c.root.is_(None), SNAPSHOTS.c.kind.in_(kinds)
            )
            assert connection.scalar(keys_without_root) == 0
            assert set(connection.scalars(sa.select(POSITIONS.c.stream))) == set(STREAMS)

    asyncio.run(work())


def test_a_follower_that_is_behind_meets_new_trials_without_loading_all_anew(database, monkeypatch):
    """Another saves without a pause: what was never saved was not otherwise before."""

    async def work():
        log = MemoryLog()
        gated = GatedLog(log, *STREAMS)
        leader, follower = Replica(database, log, leads=True), Replica(database, gated, leads=False)
        async with running(leader, follower):
            await some_trials(log, 3)
            await at_rest(log, leader, follower)
            await saved(log, leader)
            await until(lambda: follower.saver.is_saved(follower.saver.portions.folded))
            faults = []
            monkeypatch.setattr(follower.runner, "_on_fault", faults.append)
            gated.shut(subjects.LOGS)
            for trial in range(4, TRIALS):
                await append(log, of_trial(trial, "lines", 1), 100 + trial)
                await append(log, of_trial(trial, "report", 1), 200 + trial)
                await at_rest(log, leader)
                await saved(log, leader)
                await at_rest(log, follower, streams={subjects.REPORTS})
            gated.open(subjects.LOGS)
            await at_rest(log, follower)
            assert set(dict(follower.state.trials)) >= set(range(4, TRIALS))
            assert faults == []

    asyncio.run(work())


def test_what_was_deleted_leaves_memory_and_what_still_comes_of_it_is_dropped(database):
    async def work():
        async with leading(database) as (log, leader):
            for number, trial in enumerate(range(1, EXPERIMENTS + 1), 500):
                await append(log, of_trial(trial, "deleted", number), number)
            await at_rest(log, leader)
            await saved(log, leader)
            await others_go_on(log, leader)
            loaded = set(dict(leader.state.gone))
            assert len(loaded) < EXPERIMENTS
            trial = next(trial_id for trial_id in range(1, TRIALS) if experiment_of(trial_id) not in loaded)
            for number, what in enumerate(("report", "lines"), 700):
                await append(log, of_trial(trial, what, number), number)
            await at_rest(log, leader)
            assert experiment_of(trial) in dict(leader.state.gone)
            assert get_loaded(leader.state.trials, trial) is None
            assert not list(leader.state.sources_of.scan(experiment_of(trial)))
            look_at(leader.state, from_zero(log))
        fresh = Replica(database, log, leads=False)
        async with running(fresh):
            await at_rest(log, fresh)
            look_at(fresh.state, from_zero(log))

    asyncio.run(work())
