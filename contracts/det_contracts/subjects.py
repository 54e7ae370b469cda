"""All NATS subjects of the platform, as functions.

In `control.>`, the subject says who decided, and about what: `control.<owner>[.<aggregate>].<id>.<what>`.
Permissions, fences and filters are patterns over these subjects.
"""

from __future__ import annotations

CONTROL = "CONTROL"
REPORTS = "REPORTS"
LOGS = "LOGS"
ORDERS = "ORDERS"
"""The complete orders of each worker: derived from CONTROL, only the latest message per worker is kept."""
WITNESS = "WITNESS"
"""Messages of scripts and workers before the intake has checked them: an inbox, not the log."""

STREAM_SUBJECTS = {
    CONTROL: "control.>",
    REPORTS: "reports.>",
    LOGS: "logs.>",
    ORDERS: "orders.>",
    WITNESS: "witness.>",
}
LEASES = "leases"
"""The bucket that says which replica of a service is the leader. In memory, and not part of the log."""
INTAKE = "intake"
"""Owner of the decisions on what is admitted from WITNESS to CONTROL."""
ARCHIVE = "archive"
"""Service that stores old parts of CONTROL outside the broker."""
PROVISIONER = "provisioner"
"""Service that starts and stops workers as pools request. It makes no decisions."""


_LINES = f".{INTAKE}.lines"
EDGE = "edge."
"""Prefix for clusters of several brokers: where untrusted messages arrive before the intake forwards them."""


def edge_subject(subject: str) -> str:
    """Return the subject on which the intake receives an untrusted message before it reaches a stream."""
    return EDGE + subject


def stream_of(subject: str) -> str:
    """Return the stream that stores a subject's messages, or an empty string."""
    # The only question that is stored: lines are acknowledged like any append, and the worker then forgets
    # them.
    if subject.endswith(_LINES) and subject.startswith("ask.worker."):
        return LOGS
    first = subject.partition(".")[0] + "."
    return next((name for name, pattern in STREAM_SUBJECTS.items() if pattern.startswith(first)), "")


def control(name: str, key: object) -> str:
    """Return the subject of an event.

    The last token of `name` is what happened, the others say who decided.
    """
    about, _, what = name.rpartition(".")
    return f"control.{about}.{key}.{what}"


def decision(owner: str) -> str:
    """Return the single subject on which an owner's decisions are fenced."""
    return f"control.{owner}.decision"


def root_of(subject: str) -> str:
    """Return the part of a CONTROL subject or filter that identifies the object; empty if there are several.

    `control.searcher.trial.7` for the searcher's decisions about trial 7, `control.trial.7` for statements of
    its script. The archive indexes messages by it.
    """
    tokens = subject.split(".")
    # Facts have no owner in their subject, and so one token less.
    length = 3 if tokens[1:2] in (["trial"], ["worker"]) or tokens[2:3] == ["decision"] else 4
    root = tokens[:length]
    return ".".join(root) if len(root) == length and not {"*", ">"} & set(root) else ""


def decisions_about_trial(trial_id: int) -> str:
    """Return the filter for the searcher's decisions about one trial."""
    return f"control.searcher.trial.{trial_id}.>"


def decisions_about_allocation(allocation_id: str) -> str:
    """Return the filter for the scheduler's decisions about one allocation."""
    return f"control.scheduler.allocation.{allocation_id}.>"


def decisions_about_worker(worker_id: str) -> str:
    """Return the filter for the scheduler's decisions about one worker."""
    return f"control.scheduler.worker.{worker_id}.>"


def orders(worker_id: str) -> str:
    """Return the subject of a worker's orders."""
    return f"orders.worker.{worker_id}"


def newest_orders_check(worker_id: str) -> str:
    """Return the subject on which a worker asks whether it has acted on its latest orders. Never stored."""
    return f"orders.heard.{worker_id}"


def refusals(trial_id: int) -> str:
    """Return the subject for reports of a trial that the metrics service refused."""
    return f"control.metrics.trial.{trial_id}.report_refused"


def witness_of_trial(trial_id: int | str) -> str:
    """Return the subject on which a trial's script states facts."""
    return f"witness.trial.{trial_id}"


def witness_of_worker(worker_id: str) -> str:
    """Return the subject on which a worker states facts."""
    return f"witness.worker.{worker_id}"


def witness_by_rest(trial_id: int | str) -> str:
    """Return the subject on which the gateway states facts that a trial's script sent over REST."""
    return f"witness.rest.{trial_id}"


def facts_of_trial(trial_id: int | str) -> str:
    """Return the filter for admitted facts of a trial's script."""
    return f"control.trial.{trial_id}.>"


def is_fact_of_script(subject: str) -> bool:
    """Whether a subject is for admitted facts of scripts.

    Earlier versions let scripts write to it directly.
    """
    return subject.startswith("control.trial.")


def facts_of_worker(worker_id: str) -> str:
    """Return the filter for admitted facts of a worker."""
    return f"control.worker.{worker_id}.>"


def reports(trial_id: int) -> str:
    """Return the subject for metric reports of a trial."""
    return f"reports.{trial_id}.metrics"


def reports_of(trial_id: int | str) -> str:
    """Return the filter for everything that a trial may report."""
    return f"reports.{trial_id}.>"


def logs(task_id: str) -> str:
    """Return the subject for log batches of a task."""
    return f"logs.{task_id}"


def command(owner: str, name: str) -> str:
    """Return the subject on which an owner receives a command."""
    return f"command.{owner}.{name}"


def query(owner: str, name: str) -> str:
    """Return the subject on which an owner receives a query."""
    return f"query.{owner}.{name}"


def question_of_trial(trial_id: int | str, owner: str, name: str) -> str:
    """Return the subject for a question of a trial's script. A script may ask only in its own name."""
    return f"ask.trial.{trial_id}.{owner}.{name}"


def question_of_worker(worker_id: str, owner: str, name: str) -> str:
    """Return the subject for a question of a worker."""
    return f"ask.worker.{worker_id}.{owner}.{name}"


def lines_of_worker(worker_id: str) -> str:
    """Return the subject on which a worker submits log lines of its allocations.

    They are stored under `logs`.
    """
    return question_of_worker(worker_id, INTAKE, "lines")


def trial_of_question(subject: str) -> int:
    """Return the trial in whose name a question was asked; 0 if the subject names none."""
    name = subject.split(".")[2]
    # The broker lets a script ask only under its own number, but a subject's token may be anything; 16 digits
    # are below 2^53.
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 17 else 0


def heartbeat(worker_id: str) -> str:
    """Return the subject of a worker's heartbeats, which are not stored."""
    return f"heartbeat.{worker_id}"


def script_heartbeat(trial_id: int | str) -> str:
    """Return the subject of heartbeats of an off-cluster script.

    They contain the run number and are not stored.
    """
    return f"alive.{trial_id}"


def health_look() -> str:
    """Return the subject for a service's view of streams and leases; see `services.kit.cluster_monitor`."""
    return "health.look"


def health_sign(program: str, replica: str) -> str:
    """Return the subject for one process's problems; `*` for both matches all.

    See `services.kit.health_reports`.
    """
    return f"health.sign.{program}.{replica}"


def saved_position(owner: str) -> str:
    """Return the subject for asking a service for the position of its database."""
    return f"query.{owner}.saved"


def log_progress(owner: str) -> str:
    """Return the subject for asking a service's processes how far they have read the log.

    See `services.kit.log_progress`.
    """
    return f"query.{owner}.log_progress"


def history_of_experiment(experiment_id: int) -> tuple[str, ...]:
    """Return the filters for decisions about an experiment itself, without its trials."""
    return (
        f"control.searcher.experiment.{experiment_id}.*",
        f"control.scheduler.job.{experiment_id}.*",
        f"control.checkpoints.experiment.{experiment_id}.*",
    )


def history_of_trial(trial_id: int) -> tuple[str, ...]:
    """Return the filters for decisions about a trial, and for statements of its script that caused them."""
    # Not progress and status: a script states them as often as it likes, and a history of them shows nothing
    # else any more.
    stated = ("operation_completed", "exited_early", "checkpoint_stored", "preemption_acknowledged")
    judged = ("settled", "report_refused")
    return (
        decisions_about_trial(trial_id),
        *(f"control.trial.{trial_id}.{what}" for what in stated),
        *(f"control.metrics.trial.{trial_id}.{what}" for what in judged),
    )


def all_events_of_trial(trial_id: int) -> tuple[str, ...]:
    """Return the same filters, including every progress, status and validation."""
    return (decisions_about_trial(trial_id), facts_of_trial(trial_id), f"control.metrics.trial.{trial_id}.>")


def allocations_of(task_id: str) -> str:
    """Return the filter for the scheduler's decisions about all runs of a task."""
    return f"control.scheduler.allocation.{task_id}.>"


def deletions_of(experiment_id: int) -> str:
    """Return the filter for tasks that delete checkpoints of one experiment."""
    return f"control.checkpoints.deletion.{experiment_id}.>"


def attempts_of(delivery_id: str) -> str:
    """Return the subject for the results of delivery attempts to a webhook."""
    return f"control.webhooks.delivery.{delivery_id}.tried"


def history_of_worker(worker_id: str) -> tuple[str, ...]:
    """Return the filters for why a worker was requested or given back, and when it came and went."""
    came = tuple(f"control.worker.{worker_id}.{what}" for what in ("registered", "left"))
    return (decisions_about_worker(worker_id), *came)


def history_of_pool(pool: str) -> tuple[str, ...]:
    """Return the filters for a pool's settings, its users, and the workers requested by all pools."""
    kinds = ("wanted", "provision_reported", "released", "dismissed")
    own = (f"control.scheduler.pool.{pool}.*", f"control.gateway.pool.{pool}.*")
    return (*own, *(f"control.scheduler.worker.*.{what}" for what in kinds))


def run_events_of_worker(worker_id: str) -> tuple[str, ...]:
    """Return the filters for what happened to the processes of one worker."""
    return (
        f"control.worker.{worker_id}.allocation_started",
        f"control.worker.{worker_id}.allocation_exited",
        f"control.scheduler.worker.{worker_id}.lost",
    )
