"""Which deliveries are due, when they are tried again, when they are given up, and what is remembered."""

import msgspec
import pytest

from det_contracts.events import gateway, searcher
from det_contracts.events.webhooks import DeliveryDue, DeliveryGivenUp, DeliveryTried
from det_contracts.problems import Refused
from det_contracts.queries import Deliveries, Webhooks
from det_contracts.webhook_commands import RemoveWebhook, TryWebhook
from services.kit.rules import dump
from services.kit.testing import Fold
from services.webhooks.app import RULES
from services.webhooks.commands import MAX_WEBHOOKS, StateAttempt, pause_s
from services.webhooks.domain import state as limits
from services.webhooks.queries import deliveries, webhooks
from tests.webhooks.conftest import created, ended


def attempt(hooks, delivery_id, number=1, problem="", **more):
    """State what an attempt came to; returns what follows."""
    status = 500 if problem else 204
    command = StateAttempt(
        delivery_id=delivery_id,
        attempt=number,
        status=status,
        problem=problem,
        took_s=0.1,
        chance=0.5,
        **more,
    )
    result = hooks.fold.rule(command)
    return [*result.events, *hooks.fold.decide()]


def test_a_new_state_is_sent_to_the_webhooks_that_match(hooks):
    both, other = hooks.make("COMPLETED", "ERROR"), hooks.make("ERROR", "PAUSED")
    hooks.fold.now += 90
    (due,) = hooks.decisions_after(ended(1))
    assert (due.webhook_id, due.occasion, due.happened_at) == (
        both,
        "EXPERIMENT_STATE_CHANGE",
        hooks.fold.now,
    )
    payload = due.experiment
    assert (payload.id, payload.state, payload.name, payload.duration_s) == (1, "COMPLETED", "digits", 90.0)
    assert (payload.resource_pool, payload.slots_per_trial) == ("default", 2)
    assert (payload.workspace, payload.project) == ("Uncategorized", "Uncategorized")
    first, second = hooks.decisions_after(created(2), ended(2, "ERROR"))
    assert {first.webhook_id, second.webhook_id} == {both, other}
    assert len({due.delivery_id, first.delivery_id, second.delivery_id}) == 3


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (searcher.ExperimentActivated(1, "by ann"), "ACTIVE"),
        (searcher.ExperimentPaused(1, "by ann"), "PAUSED"),
        (ended(1, "CANCELED"), "CANCELED"),
    ],
)
def test_every_state_that_can_be_subscribed_to_is_sent(hooks, event, state):
    hooks.make(state)
    (due,) = hooks.decisions_after(event)
    assert due.experiment.state == state


def test_names_are_those_of_the_moment(hooks):
    hooks.make()
    workspace = gateway.WorkspaceSet(workspace_id=2, name="nlp", owner="ann", reason="")
    project = gateway.ProjectSet(project_id=3, workspace_id=2, name="tagging", owner="ann", reason="")
    renamed = searcher.ExperimentRevised(1, {"name": "new"}, "")
    moved = gateway.ExperimentMoved(experiment_id=1, project_id=3, reason="")
    (due,) = hooks.decisions_after(workspace, project, renamed, moved, ended(1))
    payload = due.experiment
    assert (payload.name, payload.workspace, payload.project) == ("new", "nlp", "tagging")


def test_earlier_events_are_not_sent(hooks):
    hooks.decisions_after(ended(1))
    hooks.make()
    assert hooks.decisions_after() == []


def test_a_delivery_that_arrived_is_over(hooks):
    hook = hooks.make()
    (due,) = hooks.decisions_after(ended(1))
    assert hooks.state.next_delivery(hook).due is due
    (tried,) = attempt(hooks, due.delivery_id)
    assert (tried.attempt, tried.next_at, tried.reason) == (1, None, "the receiver answered 204")
    assert hooks.state.deliveries[due.delivery_id].state == "DELIVERED"
    assert hooks.state.next_delivery(hook) is None


def test_pauses_grow_and_in_the_end_it_is_given_up(hooks):
    hooks.make()
    (due,) = hooks.decisions_after(ended(1))
    waits = []
    for number in range(1, limits.MAX_TRIES):
        (tried,) = attempt(hooks, due.delivery_id, number, "the receiver answered 500")
        waits.append(tried.next_at - hooks.fold.now)
        hooks.fold.now = tried.next_at
    assert waits == [10, 30, 90, 270, 810, 2430, 7290, 21600, 21600]
    last, over = attempt(hooks, due.delivery_id, limits.MAX_TRIES, "the receiver answered 500")
    assert last.next_at is None
    assert over == DeliveryGivenUp(
        due.delivery_id, 1, "attempt 10, the last one, failed: the receiver answered 500"
    )
    assert hooks.state.deliveries[due.delivery_id].state == "GIVEN_UP"


def test_chance_spreads_attempts():
    assert pause_s(1, 0.0) == 5.0
    assert pause_s(1, 1.0) == 15.0


def test_what_a_retry_cannot_change_is_not_tried_again(hooks):
    hooks.make()
    (due,) = hooks.decisions_after(ended(1))
    tried, over = attempt(hooks, due.delivery_id, 1, "10.0.0.1 is not contacted from here", final=True)
    assert (tried.next_at, type(over)) == (None, DeliveryGivenUp)
    assert over.reason == "the only attempt failed: 10.0.0.1 is not contacted from here"


def test_an_attempt_counts_once_whoever_made_it(hooks):
    """A process that had lost its lead, or was stopped for a while, made the same attempt again."""
    hooks.make()
    (due,) = hooks.decisions_after(ended(1))
    attempt(hooks, due.delivery_id, 1, "it did not answer")
    assert attempt(hooks, due.delivery_id, 1) == []
    attempt(hooks, due.delivery_id, 2)
    assert attempt(hooks, due.delivery_id, 3) == []
    assert attempt(hooks, "unknown", 1) == []


def test_a_test_is_tried_once_and_before_all_others(hooks):
    hook = hooks.make()
    hooks.decisions_after(ended(1))
    id = hooks.fold.rule(TryWebhook(webhook_id=hook, user="admin")).value
    assert hooks.state.next_delivery(hook).due.delivery_id == id
    assert hooks.state.deliveries[id].reason == "tested by admin"
    tried, over = attempt(hooks, id, 1, "it did not answer")
    assert (tried.next_at, type(over)) == (None, DeliveryGivenUp)


def test_what_waits_for_a_dead_receiver_is_bounded(hooks, monkeypatch):
    monkeypatch.setattr("services.webhooks.react.MAX_WAITING", 2)
    hook = hooks.make()
    decided = hooks.decisions_after(*(event for id in (2, 3, 4) for event in (created(id), ended(id))))
    assert [type(event) for event in decided] == [DeliveryDue, DeliveryDue, DeliveryDue, DeliveryGivenUp]
    assert decided[-1].reason == "2 other deliveries of webhook 1 wait to be made"
    assert hooks.state.waiting.count(hook) == 2


def test_only_the_last_finished_deliveries_are_kept(hooks, monkeypatch):
    monkeypatch.setattr("services.webhooks.domain.fold.REMEMBERED", 3)
    hook = hooks.make()
    ids = []
    for id in range(2, 8):
        (due,) = hooks.decisions_after(created(id), ended(id))
        attempt(hooks, due.delivery_id)
        ids.append(due.delivery_id)
    assert list(hooks.state.deliveries) == ids[-3:]
    page = deliveries(hooks.state, Deliveries(webhook_id=hook, limit=2))
    assert page["total"] == 3
    assert [row["delivery_id"] for row in page["rows"]] == [ids[-1], ids[-2]]
    assert page["rows"][0]["attempts"][0]["status"] == 204


def test_a_removed_webhook_leaves_nothing_behind(hooks):
    hook = hooks.make()
    (due,) = hooks.decisions_after(ended(1))
    assert [row["waiting"] for row in webhooks(hooks.state, Webhooks())] == [1]
    hooks.fold.rule(RemoveWebhook(webhook_id=hook, user="admin"))
    assert (hooks.state.webhooks, hooks.state.deliveries) == ({}, {})
    assert hooks.decisions_after(created(2), ended(2)) == []
    assert attempt(hooks, due.delivery_id) == []
    assert hooks.make() == hook + 1, "no id is given out twice"
    for command in (RemoveWebhook(webhook_id=hook, user="admin"), TryWebhook(webhook_id=hook, user="admin")):
        with pytest.raises(Refused, match="webhook '1' not found"):
            hooks.fold.rule(command)


def test_a_webhook_removed_while_something_is_owed_to_it(hooks):
    hook = hooks.make()
    hooks.fold.apply(ended(1))
    hooks.fold.rule(RemoveWebhook(webhook_id=hook, user="admin"))
    assert hooks.fold.decide() == []
    assert (hooks.state.owed, hooks.state.deliveries) == ({}, {})


def test_how_many_there_may_be(hooks):
    for _ in range(MAX_WEBHOOKS):
        hooks.make()
    with pytest.raises(Refused, match=f"there are {MAX_WEBHOOKS} webhooks already"):
        hooks.make()


def test_a_state_is_the_same_after_a_restart(hooks):
    """What is looked up by is made of the records again."""
    hook = hooks.make("COMPLETED", "PAUSED")
    (due,) = hooks.decisions_after(ended(1))
    attempt(hooks, due.delivery_id, 1, "it did not answer")
    hooks.decisions_after(created(2), ended(2))
    again = RULES.state(**{name: dict(getattr(hooks.state, name)) for name in dump(hooks.state)})
    for index in ("listeners", "owed_to", "waiting", "over", "of_webhook", "made_at"):
        assert list(getattr(again, index)) == list(getattr(hooks.state, index)), index
    assert again.next_delivery(hook) == hooks.state.next_delivery(hook)


def test_folding_twice_is_folding_once(hooks):
    """A rebuild decides nothing anew, and gives the same ids."""
    log = [*_story(hooks)]
    other = Fold(RULES).apply(*log)
    assert other.decide() == []
    assert dump(other.state) == dump(hooks.state)


def _story(hooks):
    yield created(1)
    hooks.make()
    yield next(iter(hooks.state.webhooks.values()))
    hooks.fold.apply(ended(1))
    yield ended(1)
    (due,) = hooks.fold.decide()
    yield due
    tried = attempt(hooks, due.delivery_id)[0]
    assert isinstance(tried, DeliveryTried)
    yield tried


def test_records_are_small(hooks):
    """What one delivery costs in the log does not grow with the configuration of its experiment."""
    hooks.make()
    (due,) = hooks.decisions_after(created(2, hyperparameters={"x": "y" * 100_000}), ended(2))
    assert len(msgspec.json.encode(due)) < 1000
