"""Log lines: kept in chunks that merge, found by filters, text and patterns, trimmed by a decision."""

import random
import re
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from det_contracts.problems import Refused
from det_contracts.queries import LogFields, LogPage
from services import metrics
from services.kit.database import POSITIONS, Database
from services.kit.migrate import open_database
from services.metrics.logs import scan, tiers
from services.metrics.logs.queries import log_page
from services.metrics.logs.tables import CHUNKS
from tests.fixtures.databases import POSTGRESQL_IN_FULL
from tests.fixtures.tiers import rest_in_full
from tests.metrics.world import lines


def texts(answer):
    return [line["text"] for line in answer["lines"]]


def test_lines_have_growing_ids_and_tell_how_far_they_are_complete(saved):
    ask = saved(lines("a", "b"), lines("other", task="2.z"), lines("c", offset=2, level="INFO", rank=3))
    page = ask(LogPage(task_id="1.a"))
    assert texts(page) == ["a", "b", "c"]
    assert page["through"] == 3
    assert not page["more"]
    ids = [line["id"] for line in page["lines"]]
    assert ids == sorted(set(ids))
    assert page["lines"][2] == {
        "id": ids[2], "task_id": "1.a", "allocation_id": "1.a.1", "worker_id": "w1", "at": 5.0,
        "number": 3, "level": "INFO", "rank": 3, "source": "task", "stdtype": "stdout", "text": "c",
    }  # fmt: skip
    assert texts(ask(LogPage(task_id="1.a", after_id=ids[0]))) == ["b", "c"]
    assert texts(ask(LogPage(task_id="1.a", descending=True, limit=2))) == ["c", "b"]
    assert texts(ask(LogPage(task_id="1.a", descending=True, after_id=ids[1]))) == ["a"]


def test_repeated_and_older_batches_of_a_source_are_left_out(saved):
    first, second = lines("a", offset=0), lines("b", offset=10)
    ask = saved(first, second, first, second, lines("late", offset=5), lines("c", offset=11))
    assert texts(ask(LogPage(task_id="1.a"))) == ["a", "b", "c"]
    saved(lines("agent", source="agent"), lines("w2", worker="w2"), lines("run 2", run=2), first)
    assert texts(ask(LogPage(task_id="1.a")))[3:] == ["agent", "w2", "run 2"]


def test_batches_from_no_spool_are_all_taken_and_move_nothing(saved):
    batch = lines("said", offset=-1)
    ask = saved(lines("a", offset=5), batch, batch, lines("b", offset=6))
    assert texts(ask(LogPage(task_id="1.a"))) == ["a", "said", "said", "b"]


FILTERS = {
    "allocations": (LogPage(task_id="1.a", allocation_ids=["1.a.2"]), ["r2"]),
    "workers": (LogPage(task_id="1.a", worker_ids=["w2", "nobody"]), ["w2"]),
    "sources": (LogPage(task_id="1.a", sources=["agent"]), ["agent"]),
    "levels": (LogPage(task_id="1.a", levels=["ERROR", "INFO"]), ["Bad 100%"]),
    "stdtypes": (LogPage(task_id="1.a", stdtypes=["stderr"]), ["Bad 100%"]),
    "ranks": (LogPage(task_id="1.a", ranks=[0, 1]), ["Bad 100%"]),
    "no rank": (LogPage(task_id="1.a", ranks=[-1]), ["plain", "r2", "w2", "agent"]),
    "either rank": (LogPage(task_id="1.a", ranks=[-1, 1]), ["plain", "Bad 100%", "r2", "w2", "agent"]),
    "before, with the bound": (LogPage(task_id="1.a", before_at=5.0), ["plain", "r2", "w2", "agent"]),
    "after, without the bound": (LogPage(task_id="1.a", after_at=5.0), ["Bad 100%"]),
    "text": (LogPage(task_id="1.a", text="Bad"), ["Bad 100%"]),
    "text is case-sensitive": (LogPage(task_id="1.a", text="bad"), []),
    "text is no pattern": (LogPage(task_id="1.a", text="0%"), ["Bad 100%"]),
    "text with %": (LogPage(task_id="1.a", text="%"), ["Bad 100%"]),
    "all at once": (LogPage(task_id="1.a", text="1", ranks=[1], levels=["INFO"]), []),
}


@pytest.mark.parametrize(("query", "wanted"), FILTERS.values(), ids=FILTERS)
def test_log_filters(saved, query, wanted):
    ask = saved(
        lines("plain"),
        lines("Bad 100%", offset=9, at=6.0, level="ERROR", rank=1, stdtype="stderr"),
        lines("r2", run=2),
        lines("w2", worker="w2"),
        lines("agent", source="agent"),
    )
    assert texts(ask(query)) == wanted


def test_long_logs_come_in_pages_that_fit_into_an_answer(saved, monkeypatch):
    ask = saved(*(lines(*[f"{n}-{m} " + "ö" * 100 for m in range(10)], offset=n) for n in range(20)))
    monkeypatch.setattr(scan, "PAGE_BYTES", 4000)
    all_texts, after = [], 0
    while True:
        page = ask(LogPage(task_id="1.a", after_id=after, limit=0))
        assert 0 < sum(len(line["text"].encode()) for line in page["lines"]) <= 4000
        all_texts += texts(page)
        if not page["more"]:
            break
        after = page["lines"][-1]["id"]
    assert [text.split()[0] for text in all_texts] == [f"{n}-{m}" for n in range(20) for m in range(10)]


def test_an_answer_is_bounded_as_it_travels(saved):
    ask = saved(*(lines("\x01" * 30_000, offset=n) for n in range(100)))
    page = ask(LogPage(task_id="1.a", limit=1000))
    assert len(msgspec.json.encode(page)) < 2 * 1024 * 1024 + 200_000
    assert page["more"]
    assert len(all_of(ask, LogPage(task_id="1.a", limit=1000))) == 100


def test_no_line_is_too_odd_for_a_table(saved):
    ask = saved(
        lines("nul \0 here", "\u2028 \U0001f600", "", rank=10**30), lines("x" * 500_000, offset=3, rank=-5)
    )
    assert texts(ask(LogPage(task_id="1.a"))) == ["nul \u2400 here", "\u2028 \U0001f600", "", "x" * 500_000]
    assert texts(ask(LogPage(task_id="1.a", text="\0"))) == ["nul \u2400 here"]


def all_of(ask, query):
    """Every line, page by page, as a client asks for them."""
    all_lines = []
    while True:
        page = ask(query)
        all_lines += page["lines"]
        if not page["more"]:
            return all_lines
        assert page["cursor"] != query.after_id
        query = msgspec.structs.replace(query, after_id=page["cursor"])


def chunks(tables, task="1.a"):
    chosen = sa.select(CHUNKS.c.tier, CHUNKS.c.lines, CHUNKS.c.number).where(CHUNKS.c.task_id == task)
    with tables.database.engine.connect() as connection:
        return connection.execute(chosen.order_by(CHUNKS.c.first_id)).all()


WORDS = ["loss", "error: nan", "epoch", "\u00fcber", "a.b", "\x1b[31mred\x1b[0m", ""]


def told_in_commits(world, tables, chance, commits=60):
    for number in range(commits):
        for _ in range(chance.randint(0, 3)):
            texts_ = [f"{chance.choice(WORDS)} {chance.randint(0, 99)}" for _ in range(chance.randint(0, 5))]
            batch = lines(
                *texts_,
                offset=len(world.streams["LOGS"]),
                task=chance.choice(["1.a", "1.b"]),
                worker=chance.choice(["w1", "w2"]),
                at=float(number + chance.randint(-3, 3)),
                level=chance.choice([None, "INFO", "ERROR"]),
                rank=chance.choice([None, 0, 1]),
            )
            world.add(batch)
        world.fold()
        tables.save(world)


FITS = {
    "all": (LogPage(task_id="1.a"), lambda line: True),
    "level": (LogPage(task_id="1.a", levels=["ERROR"]), lambda line: line["level"] == "ERROR"),
    "rank": (LogPage(task_id="1.a", ranks=[1, -1]), lambda line: line["rank"] in (1, None)),
    "worker": (LogPage(task_id="1.a", worker_ids=["w2"]), lambda line: line["worker_id"] == "w2"),
    "time": (
        LogPage(task_id="1.a", after_at=20.0, before_at=30.0),
        lambda line: 20.0 < line["at"] <= 30.0,
    ),
    "text": (LogPage(task_id="1.a", text="error: nan 7"), lambda line: "error: nan 7" in line["text"]),
    "short text": (LogPage(task_id="1.a", text="\u00fc"), lambda line: "\u00fc" in line["text"]),
    "regex": (
        LogPage(task_id="1.a", regex="^(loss|epoch) .?7$"),
        lambda line: re.search("^(loss|epoch) .?7$", line["text"]),
    ),
    "regex with letters": (LogPage(task_id="1.a", regex="^.ber"), lambda line: line["text"][1:4] == "ber"),
    "empty text": (LogPage(task_id="1.a", regex="^ \\d"), lambda line: line["text"].startswith(" ")),
    "number": (LogPage(task_id="1.a", from_number=50), lambda line: line["number"] >= 50),
}


@POSTGRESQL_IN_FULL
@pytest.mark.parametrize("seed", rest_in_full(range(2)))
def test_what_is_found_is_what_fits(world, tables, small, seed):
    told_in_commits(world, tables, random.Random(seed))
    whole = all_of(tables.ask, LogPage(task_id="1.a"))
    assert len(whole) > 100
    assert [line["number"] for line in whole] == list(range(1, len(whole) + 1))
    for name, (query, fits) in FITS.items():
        wanted = [line for line in whole if fits(line)]
        assert wanted, name
        for limit in (0, 1, 7):
            limited = msgspec.structs.replace(query, limit=limit)
            assert all_of(tables.ask, limited) == wanted, name
            if not query.from_number:
                backwards = msgspec.structs.replace(limited, descending=True)
                assert all_of(tables.ask, backwards) == wanted[::-1], name


@pytest.mark.parametrize("level", [None, "nothing has this level"])
def test_the_number_at_the_cursor_counts_only_lines_that_the_answer_reflects(saved, tables, level):
    """A chunk that also holds later lines ends, for this answer, where the answer ends."""
    saved(lines("a", "b"), lines("other", task="2.z"), lines("c", "d", "e", offset=2), lines("f", offset=5))
    assert len(chunks(tables)) == 1
    whole = tables.ask(LogPage(task_id="1.a"))["lines"]
    with tables.database.engine.begin() as connection:
        connection.execute(sa.update(POSITIONS).where(POSITIONS.c.stream == "LOGS").values(position=3))
    page = tables.ask(LogPage(task_id="1.a", levels=[level] if level else []))
    assert page["lines"] == ([] if level else whole[:5])
    assert page["through"] == 3
    assert page["number"] == sum(line["id"] <= page["cursor"] for line in whole) == 5


def test_from_any_line_on_it_goes_both_ways(world, tables, small):
    told_in_commits(world, tables, random.Random(5), commits=25)
    whole = all_of(tables.ask, LogPage(task_id="1.a"))
    for place, line in enumerate(whole):
        after = LogPage(task_id="1.a", after_id=line["id"], limit=5)
        before = msgspec.structs.replace(after, descending=True)
        assert tables.ask(after)["lines"] == whole[place + 1 : place + 6]
        assert tables.ask(before)["lines"] == whole[max(place - 5, 0) : place][::-1]
        upto = LogPage(task_id="1.a", from_number=place + 1, descending=True, limit=3)
        assert tables.ask(upto)["lines"] == whole[max(place - 2, 0) : place + 1][::-1]


@pytest.mark.full
@POSTGRESQL_IN_FULL
def test_many_small_commits_leave_few_chunks(world, tables):
    for number in range(700):
        world.add(lines(f"line {number}", offset=number)).fold()
        tables.save(world)
    task_chunks = chunks(tables)
    assert sum(chunk.lines for chunk in task_chunks) == 700
    assert [chunk.lines for chunk in task_chunks] == [256, 256, *[16] * 11, *[1] * 12]
    assert [chunk.number for chunk in task_chunks] == [
        sum(c.lines for c in task_chunks[:n]) for n in range(len(task_chunks))
    ]
    assert len(all_of(tables.ask, LogPage(task_id="1.a"))) == 700


def test_a_line_is_rewritten_once_per_tier_at_most():
    weights, rewritten = [], 0
    chance = random.Random(1)
    for _ in range(20_000):
        weights.append(chance.choice([1, 1, 1, 5, 40]))
        count = tiers.merge_count(weights)
        if count > 1:
            total = sum(weights[-count:])
            rewritten += total - weights[-1]
            weights[-count:] = [total]
            if tiers.tier_of(total) == tiers.FULL:
                weights.clear()
        assert len(weights) <= 15 * tiers.FULL
    assert rewritten < tiers.FULL * 20_000 * 10


def test_chunks_of_a_task_are_few_whatever_it_writes_at_once():
    chance = random.Random(4)
    weights = []
    for _ in range(5000):
        weights.append(chance.choice([1, 1, 300, 3, 5000, 20_000, 40, 1]))
        count = tiers.merge_count(weights)
        weights[-count:] = [sum(weights[-count:])]
        chunk_tiers = [tiers.tier_of(weight) for weight in weights]
        assert chunk_tiers == sorted(chunk_tiers, reverse=True)
        if weights[-1] >= tiers.STEPS[-1]:
            weights = []
        assert all(chunk_tiers.count(tier) <= 15 for tier in range(tiers.FULL))


def test_large_lines_and_large_commits_are_cut_into_full_chunks(world, tables):
    world.add(
        *(lines(*["x" * 1000] * 1000, offset=n) for n in range(6)),
        lines("y" * 3_000_000, offset=10),
        lines("z", offset=11),
    ).fold()
    tables.save(world)
    task_chunks = chunks(tables)
    # 2 MiB of text make a chunk full.
    assert [(chunk.tier, chunk.lines) for chunk in task_chunks] == [(4, 2098), (4, 2098), (4, 1805), (0, 1)]
    page = tables.ask(LogPage(task_id="1.a", descending=True, limit=3))
    assert [len(line["text"]) for line in page["lines"]] == [1]
    assert page["more"]


def test_the_same_lines_in_other_commits_answer_the_same(world, tables, small):
    told_in_commits(world, tables, random.Random(3))
    questions = [query for query, _ in FITS.values()]
    live = [all_of(tables.ask, query) for query in questions], tables.ask(LogFields("1.a"))
    tables.drop()
    world.restart().fold()
    tables.save(world)
    assert ([all_of(tables.ask, query) for query in questions], tables.ask(LogFields("1.a"))) == live


def test_a_long_search_says_how_far_it_has_come(world, tables, small, monkeypatch):
    told_in_commits(world, tables, random.Random(4))
    whole = [line for line in all_of(tables.ask, LogPage(task_id="1.a")) if "77" in line["text"]]
    monkeypatch.setattr(scan, "WORK_BYTES", 50)
    query = LogPage(task_id="1.a", regex="77")
    first = tables.ask(query)
    assert first["more"]
    assert first["cursor"] > 0
    assert all_of(tables.ask, query) == whole
    assert all_of(tables.ask, LogPage(task_id="1.a", regex="77", descending=True)) == whole[::-1]


def test_a_pattern_that_runs_away_elsewhere_does_not_here(saved):
    ask = saved(lines("a" * 400_000 + "c"))
    assert ask(LogPage(task_id="1.a", regex="(a+)+(a*)*b$"))["lines"] == []


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a(", "missing )"),
        ("(?=a)", "invalid perl operator"),
        ("x{1001}", "repetition"),
        ("a" * 10_001, "10000"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_with_the_reason(saved, pattern, why):
    ask = saved(lines("a"))
    with pytest.raises(Refused, match=re.escape(why)):
        ask(LogPage(task_id="1.a", regex=pattern))


def test_no_match_reaches_over_the_end_of_a_line(saved):
    ask = saved(lines("one", "two", "", "three"))
    for pattern, fitting in (
        ("one\\s*two", []),
        ("e$", ["one", "three"]),
        ("^$", [""]),
        ("x*", ["one", "two", "", "three"]),
        ("[^z]*", ["one", "two", "", "three"]),
        ("(?i)TWO|THREE", ["two", "three"]),
    ):
        assert texts(ask(LogPage(task_id="1.a", regex=pattern))) == fitting, pattern


def test_fields_tell_how_many_lines_and_where_the_failure_is(saved):
    ask = saved(
        lines("Traceback (most recent call last):", run=1, rank=0),
        lines("fine", level="INFO", run=2, rank=0, offset=1),
        lines("lost a peer", level="ERROR", run=2, rank=3, offset=2),
        lines("warned early", "Traceback", "ValueError", level="ERROR", run=2, rank=1, offset=3),
        lines("exit code 1", level="ERROR", source="agent", run=2),
    )  # fmt: skip
    fields = ask(LogFields("1.a"))
    assert (fields["lines"], fields["last_number"]) == (7, 7)
    assert fields["last_line"] == ask(LogPage(task_id="1.a", descending=True, limit=1))["lines"][0]["id"]
    assert fields["levels"] == {"": 1, "INFO": 1, "ERROR": 5}
    (first,) = ask(LogPage(task_id="1.a", after_id=fields["first_error"] - 1, limit=1))["lines"]
    assert (first["allocation_id"], first["text"]) == ("1.a.1", "Traceback (most recent call last):")
    (line,) = ask(LogPage(task_id="1.a", after_id=fields["failing_line"] - 1, limit=1))["lines"]
    assert (line["rank"], line["text"]) == (1, "ValueError")
    nothing = ask(LogFields("9.z"))
    assert (nothing["lines"], nothing["first_error"], nothing["failing_line"]) == (0, None, None)


def test_lines_of_the_first_schema_are_taken_along(tmp_path):
    url = f"sqlite:///{tmp_path}/old.db"
    database = Database(url)
    config = Config()
    config.set_main_option("script_location", str(Path(metrics.__file__).parent / "migrations"))
    row = {"task_id": "1.a", "allocation_id": "1.a.1", "worker_id": "w", "at": 7.25, "source": "task"}
    row |= {"stdtype": "stdout", "rank": None, "level": None}
    texts_ = {4096 * place + line: f"{place}-{line}" for place in range(1, 40) for line in range(20)}
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        table = sa.Table("lines", sa.MetaData(), autoload_with=connection)
        connection.execute(sa.insert(table), [row | {"id": id, "text": text} for id, text in texts_.items()])
        connection.execute(sa.insert(POSITIONS), {"owner": "metrics", "stream": "LOGS", "position": 39})
    database.close()
    database = open_database(url, "metrics")
    page = database.read_sync(lambda connection: log_page(connection, LogPage(task_id="1.a", limit=0)))
    assert {line["id"]: line["text"] for line in page["lines"]} == texts_
    assert {key: page["lines"][5][key] for key in row} == row
    assert not sa.inspect(database.engine).has_table("lines")
    database.close()
