"""A command that comes late is obeyed or refused with an explanation, and never fails or is half done.

Between the moment at which somebody asks and the ruling, and between the ruling and what follows from it,
what a command names may end, move, be archived or deleted. So in a story of all that can happen, each command
is ruled on again at many later points, on a view of the states that is thrown away.
"""

import contextlib

import pytest

from det_contracts import commands, queries
from det_contracts.envelope import Recorded
from det_contracts.problems import Refused
from det_contracts.states import TERMINAL
from services.kit.overlay import view_of
from services.kit.rules import Call
from tests.walks.background import Background
from tests.walks.cluster import ALL, Cluster
from tests.walks.story import Story

COUNT = 3
"""How much of everything the background has."""
EVERY = 5
"""At each point of the story, one of so many of the earlier commands comes again."""
REACTIONS = 50
"""Reactions that follow such a command, at most."""


def owner_of(command):
    kind = type(command)
    return commands.OWNER_OF.get(kind) or kind.__module__.split(".")[1]


class Views:
    """All states as they would be after a command that comes now."""

    def __init__(self, cluster):
        self.states = {owner: view_of(state) for owner, state in cluster.states.items()}
        self.now, self.position = cluster.now, cluster.positions["CONTROL"]
        self.touched = {owner: {} for owner in ALL}

    def rule(self, command):
        """Rule on a command, and on what follows from it."""
        owner = owner_of(command)
        rule = ALL[owner].commands[type(command)]
        # Without the check of rights, which looks up what is named, too, and would refuse for the rule.
        rule = getattr(rule, "__wrapped__", rule)
        result = rule(self.states[owner], command, Call("late", self.now))
        self.fold(result.events)
        left = REACTIONS
        while left and (events := self.next_reaction()):
            self.fold(events)
            left -= 1

    def fold(self, events):
        for event in events:
            self.position += 1
            recorded = Recorded(self.position, event, f"l{self.position}", "", self.now, "", "CONTROL")
            for owner, rules in ALL.items():
                self.touched[owner].update(dict.fromkeys(rules.evolve(self.states[owner], recorded)))

    def next_reaction(self):
        for owner, rules in ALL.items():
            for key in list(self.touched[owner]):
                del self.touched[owner][key]
                # A pass over a pool needs books, which are of no view.
                if key[0] != "pools" and (made := rules.react(self.states[owner], key)):
                    self.touched[owner][key] = None
                    return list(made)
        return []


class LateCommands(Cluster):
    """A cluster in which what was asked for once is asked for again and again, without effect."""

    def __init__(self):
        super().__init__()
        self.earlier_commands, self.earlier_queries = [], []
        self.obeyed, self.refusals, self.points = {}, {}, 0
        self.is_racing = False

    def ask(self, command):
        self.earlier_commands.append(command)
        return super().ask(command)

    def query(self, query):
        self.earlier_queries.append(query)
        return super().query(query)

    def tell(self, *events):
        super().tell(*events)
        if self.is_racing and events:
            self.ask_again()

    def ask_again(self):
        self.points += 1
        for command in self.earlier_commands[self.points % EVERY :: EVERY]:
            kind = type(command)
            try:
                Views(self).rule(command)
                self.obeyed[kind] = self.obeyed.get(kind, 0) + 1
            except Refused as refusal:
                self.refusals.setdefault(kind, set()).add(refusal.problem.code)
            except Exception as error:
                raise AssertionError(f"{command} fails where it comes late: {error!r}") from error
        for query in self.earlier_queries[self.points % EVERY :: EVERY]:
            owner = queries.OWNER_OF[type(query)]
            with contextlib.suppress(Refused):
                ALL[owner].answers[type(query)](self.states[owner], query)


@pytest.fixture(scope="module")
def played():
    cluster = LateCommands()
    background = Background(cluster, COUNT)
    cluster.is_racing = True
    story = Story(cluster, background)
    for id, experiment in list(story.searcher.experiments.items()):
        if experiment.state in TERMINAL:
            story.delete_experiment(id)
    return cluster


def test_late_commands_are_obeyed_or_refused(played):
    assert played.points > 100
    assert {"not_found", "failed_precondition"} <= set().union(*played.refusals.values())
    assert set(played.obeyed) | set(played.refusals) >= {commands.ChangeExperiment, commands.SetVersion}
