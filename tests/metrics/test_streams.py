"""There is no order between the streams: whatever they are folded in, the end is the same."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from det_contracts import codec, subjects
from det_contracts.events import metrics, searcher
from services.kit.rules import Call
from services.metrics.commands import COMMANDS, Settle
from tests.metrics.world import World, lines, reports, series

STREAMS = (subjects.CONTROL, subjects.REPORTS, subjects.LOGS)


@st.composite
def batches(draw):
    """What two trials report over their runs, repeats included, and some log lines."""
    drawn_batches, numbers = [], {}
    for _ in range(draw(st.integers(1, 12))):
        trial, run = draw(st.integers(1, 2)), draw(st.integers(1, 3))
        group = draw(st.sampled_from(["validation", "training"]))
        steps = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
        values = [draw(st.integers(0, 1)) for _ in steps]
        number = numbers.get((trial, run), 0) + draw(st.sampled_from([0, 1, 1, 1]))
        numbers[trial, run] = number
        of = series(group, steps, {"loss": values})
        drawn_batches.append(reports(of, trial=trial, run=run, number=max(number, 1)))
        if draw(st.booleans()):
            drawn_batches.append(lines("text", offset=draw(st.integers(0, 5))))
    return drawn_batches


def control(world):
    return [codec.decode(m.body, m.position).event for m in world.streams[subjects.CONTROL]]


def live(world, choose):
    """Fold in an order of chance, deciding now and then as the runner may: when CONTROL has been read."""
    while True:
        open_ = [s for s in STREAMS if world.at[s] < len(world.streams[s])]
        caught_up = subjects.CONTROL not in open_
        if not open_ and not world.pending():
            return
        if caught_up and world.pending() and (not open_ or choose(2)):
            world.add(*world.pending()[: 1 + choose(3)])
        elif open_:
            world.step(open_[choose(len(open_))])


@settings(max_examples=150)
@given(batches(), st.randoms(use_true_random=False))
def test_any_interleaving_ends_the_same_and_states_everything_once(drawn_batches, chance):
    ended = [searcher.TrialEnded(trial_id=1, state="COMPLETED", restarts=0, reason="done")]
    plain = World().add(*drawn_batches, *ended).fold()
    plain.decide()
    mixed = World().add(*drawn_batches, *ended)
    live(mixed, chance.randrange)
    assert mixed.dump() == plain.dump()
    order = lambda event: (event.trial_id, getattr(event, "number", 0))  # noqa: E731
    assert sorted(control(mixed), key=order) == sorted(control(plain), key=order)
    for trial in (1, 2):
        stated = [e.number for e in control(mixed) if e.trial_id == trial and hasattr(e, "number")]
        assert stated == list(range(1, len(stated) + 1))


@settings(max_examples=100)
@given(batches(), st.randoms(use_true_random=False))
def test_halfway_the_same_decisions_are_open(drawn_batches, chance):
    """Positions alone say what is pending, not how the service came there."""
    world = World().add(*drawn_batches)
    live(world, chance.randrange)
    ends = {s: chance.randrange(len(world.streams[s]) + 1) for s in STREAMS}
    results = []
    for order in (STREAMS, STREAMS[::-1]):
        other = copy.copy(world).restart()
        for stream in order:
            while other.at[stream] < ends[stream]:
                other.step(stream)
        results.append((other.dump(), other.pending()))
    assert results[0] == results[1]


def test_a_settled_trial_is_evicted_only_once_it_has_ended(world):
    world.add(searcher.TrialEnded(trial_id=4, state="ERROR", restarts=1, reason="failed")).fold()
    assert set(world.state.ended) == {4}
    world.add(metrics.Settled(trial_id=4, reason="judged")).fold()
    assert world.state.ended == {}


ENDED = searcher.TrialEnded(trial_id=4, state="ERROR", restarts=0, reason="silent")
OPENED = searcher.RunOpened(
    trial_id=4, experiment_id=1, task_id="1.a", allocation_id="1.a.2", run=2, reason="started"
)


def settle(world):
    return COMMANDS[Settle](world.state, Settle((4,)), Call("c", 1.0)).events


@pytest.mark.parametrize("again", [[ENDED], [OPENED], [OPENED, ENDED]], ids=["ended", "opened", "both"])
@pytest.mark.parametrize("overtaken", [False, True], ids=["read", "overtaken"])
def test_a_trial_that_is_reopened_or_ends_again_is_settled_anew(world, again, overtaken):
    """Whether the searcher states it before the decision about the first end, or behind it."""
    world.add(ENDED).fold()
    first = settle(world)
    world.add(*(again + first if overtaken else first + again)).fold()
    # A trial that is settled leaves memory, and nobody would see that it has ended.
    assert not world.state.settled
    if ENDED not in again:
        assert not world.state.ended
        world.add(ENDED).fold()
    world.add(*settle(world)).fold()
    assert (set(world.state.ended), set(world.state.settled)) == (set(), {4})


def test_a_trial_that_is_deleted_before_it_is_settled_leaves_nothing(world):
    world.add(ENDED).fold()
    world.add(searcher.TrialsDeleted(1, (4,), ("1.a",), "deleted by bob"), *settle(world)).fold()
    assert (world.state.ended, world.state.settled) == ({}, {})
