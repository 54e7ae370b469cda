"""Invariants of a search after each of its steps; a check returns None, or a description of the violation."""

from itertools import pairwise


def search_is_its_replay(ledger, state, id):
    """The searcher's search equals its replay from the events alone."""
    search, right = state.searches[id], ledger.experiments[id].search
    return None if search == right else f"search of experiment {id}: {search} is not its replay {right}"


def equals_tie_in_order_of_arrival(ledger, state, id):
    """Searchers spec, 5.2 and 5.4: of equal metrics the earlier one is ahead; when stopping once, behind."""
    for bracket in _brackets(state.searches[id].method):
        for rung in bracket.rungs[:-1]:
            wrong = _untidy(ledger.experiments[id], ledger, rung, bracket)
            if wrong:
                return wrong
    return None


def _brackets(method):
    return getattr(method, "brackets", None) or ((method,) if hasattr(method, "rungs") else ())


def _untidy(experiment, ledger, rung, bracket):
    for entry, next_entry in pairwise(rung.entries):
        if entry.metric > next_entry.metric:
            return f"rung of {rung.length} is not in order: {entry}, {next_entry}"
        if entry.metric == next_entry.metric:
            first, second = (_arrival(experiment, ledger, e, rung) for e in (entry, next_entry))
            if first is not None and second is not None and (first < second) == bracket.stop_once:
                return f"rung of {rung.length} breaks a tie the wrong way: {entry}, {next_entry}"
    return None


def _arrival(experiment, ledger, entry, rung):
    """Position of the completion behind an entry; None if the operation was abandoned."""
    trial = ledger.trials.get(experiment.trials.get(entry.request_id))
    operations = experiment.operations.get(entry.request_id)
    if trial is None or operations is None or entry.request_id in experiment.search.exited:
        return None
    seqs = [seq for seq, length in operations._values if length == rung.length]
    return trial.completed.get(seqs[0]) if len(seqs) == 1 else None


CHECKS = [equals_tie_in_order_of_arrival, search_is_its_replay]
