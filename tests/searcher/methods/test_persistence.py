"""Tables and rankings are maps and sorted lists whose earlier versions stay true."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.searcher.methods.ranking import MAX_RUN_LENGTH, Entry, Ranking
from services.searcher.methods.table import Table

changes = st.lists(st.tuples(st.integers(0, 60), st.none() | st.integers()), max_size=200)


@given(changes)
def test_a_table_is_a_map_at_each_of_its_versions(changes):
    table, plain, versions = Table(), {}, []
    for name, value in changes:
        name = f"trial {name}"
        if value is not None:
            table, plain = table.put(name, value), {**plain, name: value}
        elif name in plain:
            table, plain = table.drop(name), {k: v for k, v in plain.items() if k != name}
        versions.append((table, plain))
    for table, plain in versions:
        assert {name: table[name] for name in table} == plain
        assert sorted(table.values()) == sorted(plain.values())
        assert len(table) == len(plain)
        assert "trial 61" not in table


def test_a_table_spreads_as_it_grows_and_comes_back_to_the_byte():
    table = Table.of({f"trial {number}": number for number in range(5_000)})
    assert max(map(len, table.buckets)) < 5_000 / 20
    assert len(table.buckets) < 200
    encoded = msgspec.json.encode(table)
    restored = msgspec.json.decode(encoded, type=Table[int])
    assert restored == table
    assert msgspec.json.encode(restored) == encoded
    for missing in (lambda: table["other"], lambda: table.drop("other")):
        with pytest.raises(KeyError):
            missing()


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_a_ranking_is_a_sorted_list_at_each_of_its_versions(metrics):
    ranking, plain, versions = Ranking(), [], []
    for number, (metric, before) in enumerate(metrics):
        position = ranking.position(metric, before_equals=before)
        entry = Entry(metric, str(number))
        assert position.rank == sum(e.metric < metric if before else e.metric <= metric for e in plain)
        ranking = ranking.insert(position, entry)
        plain = [*plain[: position.rank], entry, *plain[position.rank :]]
        versions.append((ranking, plain))
    for ranking, plain in versions:
        assert list(ranking) == plain
        assert [ranking[ranking.position_at(index)] for index in range(len(ranking))] == plain


def test_a_long_ranking_is_cut_into_runs():
    count = 3 * MAX_RUN_LENGTH
    ranking = Ranking()
    for number in range(count):
        metric = float(number * 7919 % count)
        ranking = ranking.insert(ranking.position(metric), Entry(metric, str(number)))
    assert [entry.metric for entry in ranking] == sorted(map(float, range(count)))
    assert 3 < len(ranking.runs) < 9
    assert ranking.promote(ranking.position_at(700))[ranking.position_at(700)].promoted
    assert not ranking[ranking.position_at(700)].promoted
    with pytest.raises(IndexError):
        ranking.position_at(count)
    assert ranking.end_position().rank == count


def test_entries_leave_a_ranking_until_it_is_empty():
    ranking = Ranking.of(Entry(float(number), str(number)) for number in range(MAX_RUN_LENGTH + 1))
    for number in range(MAX_RUN_LENGTH + 1):
        assert len(ranking) == MAX_RUN_LENGTH + 1 - number
        assert all(ranking.runs) or len(ranking.runs) == 1
        ranking = ranking.without_trial(str(number)).without_trial("unknown")
        assert ranking.position(-1.0).rank == 0
    assert list(ranking) == []
    assert ranking == Ranking()
