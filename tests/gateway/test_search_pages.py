"""A page of a sorted search is a part of all matches in order, and the first one is found without sorting."""

import random

import pytest

from services.catalogue import search
from services.kit.paging import Window

COUNT = 3000
IDS = list(range(1, COUNT + 1))


def some_values(chance, draw):
    return {id: draw() for id in IDS if chance.random() < 0.8}


@pytest.mark.parametrize(
    "order", ["startTime=asc,numTrials=desc", "startTime=desc,numTrials=asc", "startTime=desc"]
)
@pytest.mark.parametrize("kind", ["numbers", "texts", "both"])
def test_every_page_is_a_part_of_the_whole(order, kind):
    chance = random.Random(kind)
    number, text = lambda: chance.randrange(40) / 2, lambda: chance.choice("aBcDeF") * 2
    draw = {"numbers": number, "texts": text, "both": lambda: chance.choice([number, text])()}[kind]
    lookup = {"startTime": some_values(chance, draw), "numTrials": some_values(chance, number)}
    request = search.parse("", order)
    whole, _ = request.page(lookup, IDS, Window(limit=-1))
    assert sorted(whole) == IDS
    for offset, limit in ((0, 10), (20, 100), (COUNT - 50, 100), (-30, 20), (COUNT, 10), (0, -2), (5, 0)):
        page, span = request.page(lookup, IDS, Window(offset, limit))
        assert page == whole[span.start : span.end], (offset, limit)
        assert span.total == COUNT


class Compared(float):
    """A number that counts how often it is compared."""

    times = 0

    def __lt__(self, other):
        Compared.times += 1
        return float(self) < float(other)

    def __gt__(self, other):
        Compared.times += 1
        return float(self) > float(other)


@pytest.mark.parametrize("order", ["startTime=asc", "startTime=desc"])
def test_the_first_page_of_many_is_found_without_sorting_all(order):
    chance = random.Random(7)
    lookup = {"startTime": {id: Compared(chance.random()) for id in IDS}}
    Compared.times = 0
    page, _ = search.parse("", order).page(lookup, IDS, Window(limit=10))
    assert len(page) == 10
    # To sort all of them takes eleven for each.
    assert Compared.times < 3 * COUNT
