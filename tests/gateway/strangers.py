"""A small cluster in which everything belongs to Olga, and everybody who may come to its door."""

from __future__ import annotations

import contextlib
import re
import time

import msgspec

from det_contracts import codec, commands
from det_contracts.events import checkpoints, gateway, scheduler, searcher, webhooks
from det_contracts.problems import Problem, Refused, unavailable
from services.checkpoints.app import RULES as CHECKPOINTS
from services.gateway.app import RULES as GATEWAY
from services.kit import task_tokens
from services.kit.log import NotConfirmed
from services.kit.rules import Call
from services.people import tokens
from services.people.commands.templates import template_id
from services.scheduler.app import RULES as SCHEDULER
from services.searcher.app import RULES as SEARCHER
from services.webhooks.app import RULES as WEBHOOKS
from tests.gateway import stories as story
from tests.gateway.harness import KEY, TASK_KEY

replace = msgspec.structs.replace
RULES = {rules.owner: rules for rules in (SEARCHER, SCHEDULER, CHECKPOINTS, WEBHOOKS, GATEWAY)}
USERS = {"olga": 3, "egon": 4, "vera": 5, "wanda": 6, "gone": 7, "victor": 8}
DECIDED = "may be decided"
"""What a command is answered that its owner would take up: nothing changes while strangers come and go."""
VALUES = {
    "experiment_id": "1",
    "trial_id": "1",
    "task_id": "1.r1",
    "allocation_id": "1.r1.1",
    "resources_id": "1.r1.1-0",
    "uuid": "c-1",
    "user_id": "3",
    "username": "olga",
    "agent_id": "w-1",
    "slot_id": "0",
    "number": "1",
    "kind": "experiment",
    "position": "1",
    "external_id": "e",
    "group_id": "2",
    "holder": "user-3",
    "webhook_id": "1",
    "workspace_id": "2",
    "session_id": "s",
    "token_id": "t",
    "rest": "x",
    "name": "digits",
}
OF_NOUN = {
    "workspaces": "2",
    "projects": "2",
    "commands": "c",
    "tensorboards": "t",
    "notebooks": "n",
    "shells": "s",
    "why": "1",
    "allocations": "1.r1.1",
}
"""What `{id}` is, by the first word of the path."""
TASKS = {"COMMAND": "c", "TENSORBOARD": "t", "NOTEBOOK": "n", "SHELL": "s"}
KEYS = {"private_key": "olgas-key", "public_key": "ssh-ed25519 A", "host_key": "ssh-ed25519 B"}
HPARAMS = {"olgas_lr": {"type": "const", "val": 1}}
QUERY = {
    # Streams that would go on want a metric by name, and say so.
    "timeoutSeconds": "0",
    "labels.name": "x",
    "trialIds": "1",
}


def furnish(world, *more):
    """Experiment 1 with a running trial, the unmanaged experiment 2, tasks, a model, a workspace: Olga's."""
    people = [
        gateway.UserSet(user_id=id, username=name, reason="made by admin") for name, id in USERS.items()
    ]
    place = {"owner": "olga", "reason": "made by olga"}
    world.apply(
        *people,
        gateway.WorkspaceSet(workspace_id=2, name="Vision", **place),
        gateway.GroupSet(group_id=2, name="crew", members=(3,), reason="made by admin"),
        gateway.ProjectSet(project_id=2, workspace_id=2, name="Digits", **place),
        _template(),
        _webhook(),
        story.worker_here(slots=8),
        *olgas_experiments(),
        *more,
        *(_task(number, kind) for number, kind in enumerate(TASKS, 1)),
    )
    given_model(world)
    world.tokens = {name: world.log_in(name) for name in (*USERS, "admin")}
    world.apply(gateway.UserSet(user_id=USERS["gone"], username="gone", active=False, reason="left"))
    world.tokens |= {
        "nobody": "",
        "expired": tokens.issue(KEY, tokens.new_session("olga", time.time() - tokens.VALID_S - 1)),
        # A worker is told the tokens of what runs on it, and can make none: it has no key that counts.
        "worker": task_tokens.issue(b"a key of its own", "1.r1.1"),
        "script": task_tokens.issue(TASK_KEY, "1.r1.1"),
        "other script": task_tokens.issue(TASK_KEY, "3.r3.1"),
        "sister script": task_tokens.issue(TASK_KEY, "1.r2.1"),
    }
    del world.client.headers["Authorization"]
    nothing_happens(world)


def _template():
    id = template_id("digits")
    return gateway.TemplateSet(template_id=id, name="digits", config={}, workspace_id=2, reason="made")


def _webhook():
    payload = {"kind": "DEFAULT", "host": "h", "url": "https://h/", "signing_key": "k", "triggers": ()}
    return webhooks.WebhookSet(webhook_id=1, user="admin", reason="made by admin", **payload)


def olgas_experiments():
    """And one of Egon, whose script visits."""
    marked = {"name": "olgas-net", "labels": ["olgas-label"]}
    filed = story.created(1, user="olga", hyperparameters=HPARAMS, **marked)
    outside = story.created(2, user="olga")
    return (
        replace(filed, project_id=2),
        searcher.ExperimentActivated(1, "activated by olga"),
        story.trial_created(1),
        *story.running(1),
        story.trial_created(2),
        *story.running(2, slot=1),
        story.stored(1, "c-1", 10),
        replace(outside, unmanaged=True, project_id=2),
        searcher.ExperimentActivated(2, "activated by olga"),
        story.created(3, user="egon"),
        searcher.ExperimentActivated(3, "activated by egon"),
        story.trial_created(3, 3),
        *story.running(3, slot=2, experiment_id=3),
    )


def given_model(world):
    world.apply(
        checkpoints.ModelSet(model_id=1, name="digits", user="olga", workspace_id=2, reason="made by olga"),
        checkpoints.VersionSet(
            model_id=1, version_id=1, number=1, checkpoint="c-1", user="olga", reason="registered by olga"
        ),
    )


def _task(number, kind):
    return scheduler.TaskSubmitted(
        task_id=TASKS[kind],
        number=number,
        kind=kind,
        user="olga",
        name="own",
        config={"entrypoint": "sleep 10", "tensorboard": {"sources": []}, "shell": KEYS},
        slots=0,
        pool="default",
        workspace_id=2,
        reason="submitted by olga",
    )


class NothingElse(dict):
    """Whatever else is asked of other services: they are away."""

    def __missing__(self, query):
        return unavailable("nobody answers this here")


def nothing_happens(world):
    """Commands are judged by their owners, and go no further; what is stated is not stored."""
    states = {owner: rules.state() for owner, rules in RULES.items()}
    for message in world.journal.streams["CONTROL"]:
        for owner, rules in RULES.items():
            # The searcher makes its trials itself, and takes none that its search did not ask for.
            with contextlib.suppress(ValueError, KeyError):
                list(rules.evolve(states[owner], codec.decode(message.body, message.position)))

    async def command(request):
        owner = commands.OWNER_OF[type(request)]
        try:
            RULES[owner].commands[type(request)](states[owner], request, Call("c", 0.0))
        except Refused as refusal:
            if refusal.problem.code in ("permission_denied", "not_found"):
                raise
        raise Refused(Problem("failed_precondition", DECIDED))

    async def append(draft):
        raise NotConfirmed(DECIDED)

    world.peers.values = NothingElse(world.peers.values)
    world.peers.command = command
    world.journal.append = append


def path_of(template):
    """A route's path with the names of Olga's things in it."""
    noun = template.removeprefix("/api/v1").split("/")[1]

    def value(match):
        name = match[1].partition(":")[0]
        if noun == "users" and name == "id":
            return VALUES["user_id"]
        if noun == "proxy" and name == "task_id":
            return "c"
        return OF_NOUN.get(noun, "1") if name == "id" else VALUES[name]

    return re.sub(r"{([\w:]+)}", value, template)
