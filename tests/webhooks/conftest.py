"""The webhooks service's rules, with an experiment to tell of."""

import pytest

from det_contracts.events import searcher
from det_contracts.webhook_commands import SetWebhook
from services.kit.testing import Fold
from services.webhooks.app import RULES


def created(id, name="digits", project_id=1, **resources):
    resources = {"resource_pool": "default", "slots_per_trial": 2} | resources
    return searcher.ExperimentCreated(
        experiment_id=id,
        user="ann",
        config={"name": name, "resources": resources},
        original_config="",
        project_id=project_id,
        reason="submitted by ann",
    )


def ended(id, state="COMPLETED"):
    return searcher.ExperimentEnded(id, state, "no trial is left")


class Hooks:
    """Shorter words for what the tests do."""

    def __init__(self):
        self.fold = Fold(RULES)
        self.state = self.fold.state

    def make(self, *states, kind="DEFAULT", url="http://receiver/x"):
        command = SetWebhook(
            kind=kind,
            host="receiver",
            url=url,
            signing_key="k",
            states=states or ("COMPLETED",),
            user="admin",
        )
        return self.fold.rule(command).value

    def decisions_after(self, *events):
        """What the service decides because of these."""
        self.fold.apply(*events)
        return self.fold.decide()


@pytest.fixture
def hooks():
    made = Hooks()
    made.fold.apply(created(1))
    return made
