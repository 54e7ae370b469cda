"""Every NATS subject of the platform, as functions.

In `control.>` a subject says who decided and about what: `control.<owner>[.<aggregate>].<id>.<what>`.
Permissions, fences and filters are all patterns over these.
"""

from __future__ import annotations

CONTROL = "CONTROL"
REPORTS = "REPORTS"
LOGS = "LOGS"
ORDERS = "ORDERS"
"""What each worker is to do, whole: the newest message per worker. It follows from CONTROL and is no part
of it."""
WITNESS = "WITNESS"
"""What scripts and workers say before the intake has looked at it: an inbox, not the log."""

STREAM_SUBJECTS = {
    CONTROL: "control.>",
    REPORTS: "reports.>",
    LOGS: "logs.>",
    ORDERS: "orders.>",
    WITNESS: "witness.>",
}
LEASES = "leases"
"""The bucket that says which replica of a service decides; in memory, and no part of the log."""
INTAKE = "intake"
"""Owner of the decisions about what is admitted from WITNESS to CONTROL."""
ARCHIVE = "archive"
"""Who keeps old parts of CONTROL outside of the broker."""
PROVISIONER = "provisioner"
"""Who has workers started and stopped where pools ask for them; it decides nothing."""


_LINES = f".{INTAKE}.lines"
EDGE = "edge."
"""Of several brokers: where what strangers say for a stream comes out, and the intake passes it on."""


def at_edge(subject: str) -> str:
    """Where the intake hears what a stranger says on a subject, before a stream does."""
    return EDGE + subject


def stream_of(subject: str) -> str:
    """The stream that stores what is said on a subject; empty for none."""
    if subject.endswith(_LINES) and subject.startswith("ask.worker."):
        return LOGS
    first = subject.partition(".")[0] + "."
    return next((name for name, pattern in STREAM_SUBJECTS.items() if pattern.startswith(first)), "")


def control(name: str, key: object) -> str:
    """Subject of an event: the last token of `name` is what happened, those before say who decided."""
    about, _, what = name.rpartition(".")
    return f"control.{about}.{key}.{what}"


def decision(owner: str) -> str:
    """The one subject on which an owner's decisions are fenced."""
    return f"control.{owner}.decision"


def root_of(subject: str) -> str:
    """Of a subject of CONTROL, or of a filter, the part that says whom it concerns; empty for many.

    `control.searcher.trial.7` of what the searcher decided about trial 7, `control.trial.7` of what its
    script stated. The archive finds messages by it.
    """
    tokens = subject.split(".")
    length = 3 if tokens[1:2] in (["trial"], ["worker"]) or tokens[2:3] == ["decision"] else 4
    root = tokens[:length]
    return ".".join(root) if len(root) == length and not {"*", ">"} & set(root) else ""


def about_trial(trial_id: int) -> str:
    """What the searcher decided about one trial."""
    return f"control.searcher.trial.{trial_id}.>"


def about_allocation(allocation_id: str) -> str:
    """What the scheduler decided about one allocation."""
    return f"control.scheduler.allocation.{allocation_id}.>"


def about_worker(worker_id: str) -> str:
    """What the scheduler decided about one worker."""
    return f"control.scheduler.worker.{worker_id}.>"


def orders(worker_id: str) -> str:
    """What one worker is to do."""
    return f"orders.worker.{worker_id}"


def orders_heard(worker_id: str) -> str:
    """Where a worker asks whether it has acted on its newest orders; nothing is ever stored on it."""
    return f"orders.heard.{worker_id}"


def refusals(trial_id: int) -> str:
    """Reports of a trial that the metrics service did not accept."""
    return f"control.metrics.trial.{trial_id}.report_refused"


def witness_of_trial(trial_id: int | str) -> str:
    """Where the script of one trial states its facts."""
    return f"witness.trial.{trial_id}"


def witness_of_worker(worker_id: str) -> str:
    """Where one worker states its facts."""
    return f"witness.worker.{worker_id}"


def witness_by_rest(trial_id: int | str) -> str:
    """Where the gateway states what a script of one trial told it over REST."""
    return f"witness.rest.{trial_id}"


def witnessed(trial_id: int | str) -> str:
    """What was admitted of the facts of one trial's script."""
    return f"control.trial.{trial_id}.>"


def is_witnessed(subject: str) -> bool:
    """Whether it is a script's fact, as the intake admitted it; earlier versions let scripts write it."""
    return subject.startswith("control.trial.")


def stated_by_worker(worker_id: str) -> str:
    """What was admitted of the facts of one worker."""
    return f"control.worker.{worker_id}.>"


def reports(trial_id: int) -> str:
    """Metric reports of one trial."""
    return f"reports.{trial_id}.metrics"


def reports_of(trial_id: int | str) -> str:
    """Everything that one trial may report."""
    return f"reports.{trial_id}.>"


def logs(task_id: str) -> str:
    """Log batches of one task."""
    return f"logs.{task_id}"


def command(owner: str, name: str) -> str:
    """Where an owner hears a command."""
    return f"command.{owner}.{name}"


def query(owner: str, name: str) -> str:
    """Where an owner hears a question."""
    return f"query.{owner}.{name}"


def asked_by_trial(trial_id: int | str, owner: str, name: str) -> str:
    """Where an owner hears a question that a trial's script asks; a script may ask in its own name only."""
    return f"ask.trial.{trial_id}.{owner}.{name}"


def asked_by_worker(worker_id: str, owner: str, name: str) -> str:
    """Where an owner hears a question of one worker."""
    return f"ask.worker.{worker_id}.{owner}.{name}"


def lines_of_worker(worker_id: str) -> str:
    """Where one worker hands in log lines of what was placed on it; they are stored under `logs`."""
    return asked_by_worker(worker_id, INTAKE, "lines")


def asker_of(subject: str) -> int:
    """The trial in whose name a question was asked; 0 where the subject names none."""
    name = subject.split(".")[2]
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 17 else 0


def heartbeat(worker_id: str) -> str:
    """A sign of life, not stored."""
    return f"heartbeat.{worker_id}"


def alive(trial_id: int | str) -> str:
    """A sign of life of a script outside of the cluster, not stored; in it the number of the run."""
    return f"alive.{trial_id}"


def health_look() -> str:
    """What a service saw of streams and leases; see `services.kit.cluster_look`."""
    return "health.look"


def health_sign(program: str, replica: str) -> str:
    """What one process says is wrong with it; `*` for both hears all. See `services.kit.health_signs`."""
    return f"health.sign.{program}.{replica}"


def saved(owner: str) -> str:
    """Where a service is asked how far its database is."""
    return f"query.{owner}.saved"


def story_of_experiment(experiment_id: int) -> tuple[str, ...]:
    """What was decided about an experiment itself, its trials left out."""
    return (
        f"control.searcher.experiment.{experiment_id}.*",
        f"control.scheduler.job.{experiment_id}.*",
        f"control.checkpoints.experiment.{experiment_id}.*",
    )


def story_of_trial(trial_id: int) -> tuple[str, ...]:
    """What was decided about a trial, and what its script stated that decisions follow from."""
    stated = ("operation_completed", "exited_early", "checkpoint_stored", "preemption_acknowledged")
    judged = ("settled", "report_refused")
    return (
        about_trial(trial_id),
        *(f"control.trial.{trial_id}.{what}" for what in stated),
        *(f"control.metrics.trial.{trial_id}.{what}" for what in judged),
    )


def everything_of_trial(trial_id: int) -> tuple[str, ...]:
    """The same with every progress, status and validation."""
    return (about_trial(trial_id), witnessed(trial_id), f"control.metrics.trial.{trial_id}.>")


def allocations_of(task_id: str) -> str:
    """What the scheduler decided about all runs of a task."""
    return f"control.scheduler.allocation.{task_id}.>"


def deletions_of(experiment_id: int) -> str:
    """Tasks that delete checkpoints of one experiment."""
    return f"control.checkpoints.deletion.{experiment_id}.>"


def attempts_of(delivery_id: str) -> str:
    """What the attempts to tell a webhook something came to."""
    return f"control.webhooks.delivery.{delivery_id}.tried"


def story_of_worker(worker_id: str) -> tuple[str, ...]:
    """Why a worker was asked for or given back, and when it came and went."""
    came = tuple(f"control.worker.{worker_id}.{what}" for what in ("registered", "left"))
    return (about_worker(worker_id), *came)


def story_of_pool(pool: str) -> tuple[str, ...]:
    """What a pool was set to, who may use it, and the workers that pools asked for, also those of others."""
    kinds = ("wanted", "provision_reported", "released", "dismissed")
    own = (f"control.scheduler.pool.{pool}.*", f"control.gateway.pool.{pool}.*")
    return (*own, *(f"control.scheduler.worker.*.{what}" for what in kinds))


def on_worker(worker_id: str) -> tuple[str, ...]:
    """What happened to the processes of one worker."""
    return (
        f"control.worker.{worker_id}.allocation_started",
        f"control.worker.{worker_id}.allocation_exited",
        f"control.scheduler.worker.{worker_id}.lost",
    )
