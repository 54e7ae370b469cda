"""`det webhook`: addresses to notify when experiments change state (not in 0.25)."""

from __future__ import annotations

import argparse
from typing import Any

from determined.cli import formatting, output
from determined.cli.failure import Failure
from determined.cli.grammar import Noun, Verb, arg
from determined.transport.rest import Session

Object = dict[str, Any]
PATH = "/api/v1/webhooks"
STATE_CHANGE = "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE"
STATES = ("ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR")
KINDS = ("default", "slack")


def list_webhooks(session: Session, args: argparse.Namespace) -> None:
    """List all webhooks."""
    webhooks = session.get(PATH)["webhooks"]
    if args.json:
        output.print_json(webhooks)
        return
    rows = [
        [
            webhook["id"],
            _kind(webhook),
            webhook["url"],
            _states(webhook),
            webhook["waiting"],
            webhook["username"],
        ]
        for webhook in webhooks
    ]
    output.table(["ID", "Type", "URL", "Told Of", "Waiting", "Made By"], rows)


def _kind(webhook: Object) -> str:
    return str(webhook["webhookType"]).removeprefix("WEBHOOK_TYPE_").lower()


def _states(webhook: Object) -> str:
    return ", ".join(trigger["condition"]["state"] for trigger in webhook["triggers"])


def create(session: Session, args: argparse.Namespace) -> None:
    """Create a webhook, and print what its receiver needs to know."""
    wanted = {
        "url": args.url,
        "webhookType": f"WEBHOOK_TYPE_{args.type.upper()}",
        "triggers": [
            {"triggerType": STATE_CHANGE, "condition": {"state": state}} for state in _wanted(args.state)
        ],
    }
    if args.signing_key:
        wanted["signingKey"] = args.signing_key
    made = session.post(PATH, wanted)["webhook"]
    if args.json:
        output.print_json(made)
        return
    print(f"Webhook {made['id']} notifies {made['url']} when an experiment is {_states(made)}.")
    if _kind(made) == "default":
        print(f"Its messages are signed with the key {made['signingKey']}")
    print(f"Try it: det webhook test {made['id']}")


def _wanted(chosen: list[str] | None) -> list[str]:
    states = [state.upper().removeprefix("STATE_") for state in chosen or ["COMPLETED", "ERROR"]]
    unknown = next((state for state in states if state not in STATES), None)
    if unknown is not None:
        raise Failure(f"--state {unknown} is not one of {', '.join(STATES)}")
    return states


def delete(session: Session, args: argparse.Namespace) -> None:
    """Delete a webhook. It gets no more notifications."""
    session.delete(f"{PATH}/{args.webhook_id}")
    print(f"Webhook {args.webhook_id} is deleted; notifications that were not delivered yet are dropped.")


def test(session: Session, args: argparse.Namespace) -> None:
    """Deliver a test message. Fails if it does not arrive."""
    session.post(f"{PATH}/{args.webhook_id}/test")
    print(f"Webhook {args.webhook_id} has accepted the test.")


def deliveries(session: Session, args: argparse.Namespace) -> None:
    """List the deliveries of a webhook, newest first."""
    deliveries = session.get(f"{PATH}/{args.webhook_id}/deliveries", {"limit": args.limit})["deliveries"]
    if args.json:
        output.print_json(deliveries)
        return
    headers = ["Time", "Of", "State", "Attempts", "Next Attempt", "Last Result"]
    output.table(headers, [_row(delivery) for delivery in deliveries])


def _row(delivery: Object) -> list[Any]:
    what = (
        f"experiment {delivery['experimentId']} {delivery['experimentState']}"
        if delivery["experimentId"]
        else "test"
    )
    return [
        formatting.when(delivery["time"]),
        what,
        delivery["state"],
        len(delivery["attempts"]),
        formatting.when(delivery["nextAttempt"]),
        delivery["reason"] if delivery["attempts"] or delivery["state"] == "GIVEN_UP" else "",
    ]


_ID = arg("webhook_id", type=int, metavar="WEBHOOK_ID", help="id of a webhook")
_JSON = arg("--json", action="store_true", help="print as JSON")
NOUN = Noun(
    "webhook",
    "send notifications when experiments change their state",
    (
        Verb("list ls", "list webhooks", list_webhooks, (_JSON,)),
        Verb(
            "create",
            "create a webhook: an address to notify when experiments change state",
            create,
            (
                arg("url", metavar="URL", help="address to post messages to"),
                arg("--type", choices=KINDS, default="default", help="signed JSON, or a message for Slack"),
                arg(
                    "--state",
                    action="append",
                    metavar="STATE",
                    help=f"notify when an experiment reaches this state: {', '.join(STATES)}; may be given "
                    "more than once; default: COMPLETED and ERROR",
                ),
                arg("--signing-key", metavar="KEY", help="signing key; generated if not given"),
                _JSON,
            ),
        ),
        Verb("delete", "delete a webhook", delete, (_ID,)),
        Verb("test", "deliver a test", test, (_ID,)),
        Verb(
            "deliveries",
            "list the deliveries of a webhook, newest first",
            deliveries,
            (
                _ID,
                arg("--limit", type=int, default=20, metavar="N", help="maximum number; default: 20"),
                _JSON,
            ),
        ),
    ),
    default="list",
)
