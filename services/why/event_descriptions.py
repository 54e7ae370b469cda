"""Describes every event of CONTROL in a sentence, without its reason: one function per event type.

An event without an entry is described by its name. A test lists such events, so that they get an entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from det_contracts import codec
from det_contracts.events import (
    archive,
    checkpoints,
    gateway,
    metrics,
    scheduler,
    searcher,
    trial,
    webhooks,
    worker,
)
from det_contracts.states import ENDS_IN
from services.kit.quotas.sizes import format_bytes
from services.why.history import History, about


class Names:
    """Names of what an event knows by its id alone."""

    def __init__(self, history: History) -> None:
        self._history = history

    def run(self, allocation_id: str) -> str:
        """`run 2 of trial 12`, or the id if the allocation's trial is unknown or does not exist."""
        owner = self._history.trial_of.get(allocation_id)
        run = allocation_id.rpartition(".")[2]
        return f"run {run} of trial {owner}" if owner is not None else f"allocation {allocation_id}"

    def user(self, id: int) -> str:
        """`user ann`, or `user 7` if the history does not know who that is."""
        return f"user {self._history.username_of(id) or id}"

    def holder(self, holder: str) -> str:
        """Who holds roles or a quota: `user-7` and `group-3` are such holders."""
        kind, _, id = holder.partition("-")
        return self.user(int(id)) if kind == "user" and id.isdecimal() else holder.replace("-", " ")


Describer = Callable[[Any, Names], str]


class Description(msgspec.Struct, frozen=True):
    """An event as a sentence, and its reason."""

    what: str
    reason: str


def describe(event: Any, history: History) -> Description:
    """What happened, and the reason given by the event's owner."""
    describer = DESCRIBERS.get(type(event), _describe_by_name)
    reason = _EXIT_REASONS.get(event.reason, event.reason) if hasattr(event, "reason") else ""
    return Description(describer(event, Names(history)), reason)


def _describe_by_name(event: Any, _: Names) -> str:
    who = about(event)
    return f"{who.kind} {who.id}: {codec.kind_of(event).name.rpartition('.')[2].replace('_', ' ')}"


_EXIT_REASONS = {
    "EXITED_REASON_INVALID_HP": "its hyperparameters are invalid",
    "EXITED_REASON_INIT_INVALID_HP": "its hyperparameters are invalid, found out before the training",
    "EXITED_REASON_USER_REQUESTED_STOP": "the script asked for the end",
}


_STATE_PHRASES = {
    "COMPLETED": "completed",
    "ERROR": "ended in error",
    "CANCELED": "was canceled",
    "PAUSED": "is paused",
    "ACTIVE": "is active",
}
_TARGET_PHRASES = {
    "COMPLETED": "was to complete",
    "ERROR": "was to end in error",
    "CANCELED": "was to be canceled",
}


def _state_phrase(phrases: dict[str, str], state: str) -> str:
    return phrases.get(state, f"came to be {state.lower().replace('_', ' ')}")


def _saved_phrase(event: Any) -> str:
    return "saved, and is archived" if event.archived else "saved"


def _user_set(event: gateway.UserSet) -> str:
    rights = "an administrator" if event.admin else "a user"
    return f"user '{event.username}' was saved: {rights}, {'active' if event.active else 'not active'}"


def _grants(grants: tuple[gateway.Grant, ...]) -> str:
    shown = [f"{g.role} in workspace {g.workspace_id}" if g.workspace_id else g.role for g in grants[:20]]
    more = f" and {len(grants) - 20} more" if len(grants) > 20 else ""
    return f"{', '.join(shown) or 'no role'}{more}"


def _quota(e: gateway.QuotaSet) -> str:
    limits = [
        _slots(e.slots) + " at once" if e.slots is not None else "",
        f"{e.jobs} jobs" if e.jobs is not None else "",
        f"{format_bytes(e.storage_bytes)} of checkpoints" if e.storage_bytes is not None else "",
    ]
    return ", ".join(filter(None, limits)) or "any number of slots, jobs and checkpoints"


def _bound(e: gateway.PoolBound) -> str:
    if not e.workspaces:
        return f"pool {e.pool} was opened to all workspaces"
    shown = ", ".join(map(str, e.workspaces[:20]))
    more = f" and {len(e.workspaces) - 20} more" if len(e.workspaces) > 20 else ""
    return f"pool {e.pool} was bound to workspaces {shown}{more}: no others may submit to it"


def _delivery_due(e: webhooks.DeliveryDue, _: Names) -> str:
    what = (
        f"that experiment {e.experiment.id} {_state_phrase(_STATE_PHRASES, e.experiment.state)}"
        if e.experiment
        else "of a test"
    )
    return f"webhook {e.webhook_id} is to be notified {what}"


def _delivery_tried(e: webhooks.DeliveryTried, _: Names) -> str:
    how = "failed" if e.problem else "succeeded"
    return f"attempt {e.attempt} of a delivery to webhook {e.webhook_id} {how}"


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"


def _checkpoints(uuids: tuple[str, ...]) -> str:
    return f"checkpoint {uuids[0]}" if len(uuids) == 1 else f"{len(uuids)} checkpoints"


def _assigned(e: scheduler.AllocationAssigned, names: Names) -> str:
    places = [f"{_slots(len(part.slots))} on {part.worker_id}" for part in e.parts]
    return f"{names.run(e.allocation_id)} got {', '.join(places)}"


def _run_requested(e: searcher.RunRequested, _: Names) -> str:
    resumed = f", to go on from step {e.steps_completed}" if e.steps_completed else ""
    return f"trial {e.trial_id} asked for {_slots(e.slots)} for its run {e.run}{resumed}"


def _preempt(e: scheduler.PreemptRequested, names: Names) -> str:
    wanted = f" its slots to {names.run(e.wanted_by)}" if e.wanted_by else ""
    return f"{names.run(e.allocation_id)} was asked to save and leave{wanted}"


def _ended(e: scheduler.AllocationEnded, names: Names) -> str:
    ends = {
        "succeeded": "ended well",
        "failed": "failed",
        "killed": "was ended",
        "worker_lost": "was lost with its agent",
        "not_started": "could not be started",
    }
    return f"{names.run(e.allocation_id)} {ends[e.outcome]}"


def _exited(e: worker.AllocationExited, names: Names) -> str:
    status = "without having started" if e.exit_code is None else f"with exit code {e.exit_code}"
    message = f": {e.message}" if e.message else ""
    return f"{names.run(e.allocation_id)} left {e.worker_id} {status}{message}"


def _stop_requested(e: searcher.StopRequested, names: Names) -> str:
    return f"the searcher wanted {names.run(e.allocation_id)} {'killed' if e.kill else 'to save and leave'}"


def _switched(e: scheduler.WorkerSwitched | scheduler.SlotSwitched, _: Names) -> str:
    what = "enabled" if e.enabled else "drained" if e.draining else "disabled"
    slot = f"slot {e.slot_id} of " if isinstance(e, scheduler.SlotSwitched) else ""
    return f"{slot}agent {e.worker_id} was {what}"


def _provisioned(e: scheduler.ProvisionReported, _: Names) -> str:
    detail = f" ({e.detail})" if e.detail else ""
    return f"the engine of pool {e.pool} had worker {e.worker_id} {e.phase}{detail}"


def _job(e: scheduler.JobChanged, _: Names) -> str:
    limit = "no limit of slots" if e.max_slots is None else f"at most {_slots(e.max_slots)}"
    return f"the job of experiment {e.experiment_id} got priority {e.priority}, weight {e.weight:g}, {limit}"


def _number(metric: Any) -> str:
    return f"{metric:.6g}" if isinstance(metric, float) else str(metric)[:100]


DESCRIBERS: dict[type, Describer] = {
    archive.SegmentSealed: lambda e, _: f"positions {e.first} to {e.last} of {e.stream} were archived",
    searcher.ExperimentCreated: lambda e, _: f"experiment {e.experiment_id} was created",
    searcher.ExperimentActivated: lambda e, _: f"experiment {e.experiment_id} was activated",
    searcher.ExperimentPaused: lambda e, _: f"experiment {e.experiment_id} was paused",
    searcher.ExperimentStopping: lambda e, _: (
        f"experiment {e.experiment_id} {_state_phrase(_TARGET_PHRASES, ENDS_IN.get(e.to, e.to))}"
    ),
    searcher.ExperimentEnded: lambda e, _: (
        f"experiment {e.experiment_id} {_state_phrase(_STATE_PHRASES, e.state)}"
    ),
    searcher.ExperimentKillForced: lambda e, _: (
        f"all remaining runs of experiment {e.experiment_id} were killed"
    ),
    searcher.OperationsPosted: lambda e, _: (
        f"the search method of experiment {e.experiment_id} asked for {len(e.operations)} operation(s)"
    ),
    searcher.TrialRequested: lambda e, _: f"another trial of experiment {e.experiment_id} was requested",
    searcher.ExperimentArchived: lambda e, _: (
        f"experiment {e.experiment_id} was {'archived' if e.archived else 'unarchived'}"
    ),
    searcher.ExperimentRevised: lambda e, _: (
        f"experiment {e.experiment_id} was changed: {', '.join(e.changes)}"
        if e.changes
        else f"experiment {e.experiment_id} was not changed"
    ),
    searcher.ExperimentDeleting: lambda e, _: f"experiment {e.experiment_id} is to be deleted",
    searcher.TrialsDeleted: lambda e, _: (
        f"{len(e.trial_ids)} trials of experiment {e.experiment_id} were deleted"
    ),
    searcher.ExperimentDeleted: lambda e, _: (
        f"experiment {e.experiment_id} "
        f"{'was deleted' if e.state == 'DELETED' else 'could not be deleted completely'}"
    ),
    searcher.TrialCreated: lambda e, _: f"trial {e.trial_id} was created",
    searcher.OperationSet: lambda e, _: (
        f"trial {e.trial_id} was to train to length {e.length} (operation {e.seq})"
    ),
    searcher.TrialIdled: lambda e, _: (
        f"trial {e.trial_id} had nothing {'more ' if e.final else ''}to do after operation {e.seq}"
    ),
    searcher.RunRequested: _run_requested,
    searcher.RunOpened: lambda e, _: f"a script outside the cluster ran trial {e.trial_id}, run {e.run}",
    searcher.StopRequested: _stop_requested,
    searcher.RunEnded: lambda e, _: f"run {e.run} of trial {e.trial_id} ended, and the trial continues",
    searcher.TrialStopping: lambda e, _: (
        f"trial {e.trial_id} {_state_phrase(_TARGET_PHRASES, ENDS_IN.get(e.to, e.to))}"
    ),
    searcher.TrialEnded: lambda e, _: f"trial {e.trial_id} {_state_phrase(_STATE_PHRASES, e.state)}",
    searcher.TrialOverdue: lambda e, _: (
        f"a deadline of run {e.run} of trial {e.trial_id} passed" + (f": {e.reason}" if e.reason else "")
    ),
    scheduler.AllocationAssigned: _assigned,
    scheduler.PreemptRequested: _preempt,
    scheduler.TaskSubmitted: lambda e, _: f"{e.kind.lower()} {e.task_id} was submitted",
    scheduler.TaskIdled: lambda e, _: f"task {e.task_id} {'was idle' if e.idle else 'was used again'}",
    scheduler.TaskStopRequested: lambda e, _: f"task {e.task_id} was to be killed",
    scheduler.TaskForgotten: lambda e, _: f"task {e.task_id} was forgotten",
    scheduler.WorkerForgotten: lambda e, _: f"agent {e.worker_id} was forgotten",
    gateway.Served: lambda e, names: f"{names.run(e.allocation_id)} answers HTTP at {e.address}",
    scheduler.DaemonMarked: lambda e, names: (
        f"part {e.rank} of {names.run(e.allocation_id)} serves the others"
    ),
    scheduler.KillRequested: lambda e, names: f"{names.run(e.allocation_id)} was to be killed",
    scheduler.AllocationEnded: _ended,
    scheduler.GivenUp: lambda e, names: (
        f"{names.run(e.allocation_id)} was presumed ended on {e.worker_id} by its host"
    ),
    scheduler.WorkerLost: lambda e, _: f"agent {e.worker_id} was given up for lost",
    scheduler.DeadlinePassed: lambda e, names: f"{names.run(e.allocation_id)} did not leave in time",
    scheduler.PauseOver: lambda e, _: f"the slots kept for trial {e.trial_id} were released",
    scheduler.PoolConfigured: lambda e, _: f"pool {e.pool} was set to schedule by {e.settings.scheduler}",
    scheduler.WorkerWanted: lambda e, _: f"pool {e.pool} asked for worker {e.worker_id}",
    scheduler.ProvisionReported: _provisioned,
    scheduler.WorkerTimePassed: lambda e, _: f"a deadline of worker {e.worker_id} passed",
    scheduler.WorkerReleased: lambda e, _: f"pool {e.pool} gave back worker {e.worker_id}",
    scheduler.WorkerDismissed: lambda e, _: f"nothing was left of worker {e.worker_id}",
    scheduler.EngineReported: lambda e, _: (
        f"the engine of pool {e.pool} did not answer: {e.problem}"
        if e.problem
        else f"the engine of pool {e.pool} answered again"
    ),
    scheduler.RetryDue: lambda e, _: f"pool {e.pool} could ask for workers again",
    scheduler.WorkerSwitched: _switched,
    scheduler.SlotSwitched: _switched,
    scheduler.JobChanged: _job,
    worker.WorkerRegistered: lambda e, _: f"agent {e.worker_id} offered {_slots(len(e.slots))}",
    worker.WorkerLeft: lambda e, _: f"agent {e.worker_id} was stopped",
    worker.AllocationStarted: lambda e, names: f"{names.run(e.allocation_id)} started on {e.worker_id}",
    worker.AllocationExited: _exited,
    trial.OperationCompleted: lambda e, _: (
        f"the script of trial {e.trial_id} reported {_number(e.metric)} for operation {e.seq}"
    ),
    trial.Progressed: lambda e, _: (
        f"trial {e.trial_id} had trained {e.units:g} unit{'' if e.units == 1 else 's'}"
    ),
    trial.ExitedEarly: lambda e, _: f"the script of trial {e.trial_id} gave up",
    trial.CheckpointStored: lambda e, _: (
        f"trial {e.trial_id} stored checkpoint {e.uuid} at step {e.steps_completed}"
    ),
    trial.PreemptionAcknowledged: lambda e, _: f"run {e.run} of trial {e.trial_id} agreed to leave",
    trial.Heartbeat: lambda e, _: f"the script of trial {e.trial_id} sent a heartbeat",
    trial.StatusSet: lambda e, _: f"the script of trial {e.trial_id} says: {e.status}",
    metrics.Validated: lambda e, _: (
        f"a validation of trial {e.trial_id} at step {e.steps_completed} was accepted"
        + ("" if e.metric is None else f" with {_number(e.metric)}")
    ),
    metrics.Settled: lambda e, _: f"the reports of trial {e.trial_id} were complete",
    metrics.LogsTrimmed: lambda e, _: "old log lines were deleted",
    metrics.ShardsSet: lambda e, _: f"{e.shards} metrics processes share the trials from {e.first_trial} on",
    metrics.ShardJoined: lambda e, _: f"metrics process {e.shard} of {e.shards} reads its part",
    metrics.DatabaseCopied: lambda e, _: f"the database of {e.owner} was copied to its object store",
    metrics.PointsDropped: lambda e, _: "its old curves were deleted; statistics and validations stay",
    metrics.ReportRefused: lambda e, _: (
        f"a {e.group} report of trial {e.trial_id} at step {e.steps_completed} was refused"
    ),
    checkpoints.DeletionRequested: lambda e, _: f"task {e.task_id} was to delete {_checkpoints(e.uuids)}",
    checkpoints.DeletionFinished: lambda e, _: (
        f"task {e.task_id} {'deleted' if e.deleted else 'did not delete'} {_checkpoints(e.uuids)}"
    ),
    checkpoints.ExperimentEmptied: lambda e, _: (
        f"the checkpoints of experiment {e.experiment_id} "
        f"{'are' if e.emptied else 'could not all be'} deleted"
    ),
    gateway.SessionOpened: lambda e, names: f"{names.user(e.user_id)} logged in from {e.address or 'here'}",
    gateway.SignedIn: lambda e, names: (
        f"{names.user(e.user_id)} signed in through {e.issuer} as '{e.username}'"
    ),
    gateway.SessionRenewed: lambda e, _: "an active session was extended",
    gateway.SessionsForgotten: lambda e, names: (
        f"{len(e.session_ids)} old session(s) of {names.user(e.user_id)} were removed"
    ),
    gateway.AccessToken: lambda e, names: f"{names.user(e.user_id)} got the API token '{e.name}' ({e.scope})",
    gateway.TokenRevoked: lambda e, _: f"API token {e.token_id} was revoked",
    gateway.SessionClosed: lambda e, _: f"a session of {e.user} was closed",
    gateway.TemplateSet: lambda e, _: f"template '{e.name}' was set",
    gateway.GatherJoined: lambda e, names: f"a member of {names.run(e.allocation_id)} joined an all-gather",
    gateway.UserSet: lambda e, _: _user_set(e),
    gateway.SettingsSet: lambda e, names: (
        f"{len(e.settings)} setting(s) of pages are stored for {names.user(e.user_id)}"
    ),
    gateway.ProjectViewed: lambda e, names: f"{names.user(e.user_id)} opened project {e.project_id}",
    gateway.PasswordRenewed: lambda e, names: (
        f"the password of {names.user(e.user_id)} was rehashed at the current cost"
    ),
    gateway.PasswordSet: lambda e, names: f"{names.user(e.user_id)} got a new password",
    gateway.GroupSet: lambda e, _: f"group '{e.name}' was saved: {len(e.members)} members",
    gateway.GroupRemoved: lambda e, _: f"group {e.group_id} was removed",
    gateway.RolesSet: lambda e, names: f"{names.holder(e.holder)} holds {_grants(e.grants)}",
    gateway.PoolBound: lambda e, _: _bound(e),
    gateway.DecisionsRetried: lambda e, _: f"the {e.owner} was to retry its parked records",
    gateway.RebuildFromCopyAsked: lambda e, _: (
        f"the database of the {e.owner} was to be filled from its copy"
    ),
    gateway.RebuildAsked: lambda e, _: f"the database of the {e.owner} was to be rebuilt from the log",
    gateway.EventSkipped: lambda e, _: (
        f"the {e.owner} is to skip event {e.position} of {e.stream}, which it cannot process: {e.error}"
    ),
    gateway.LoggingSet: lambda e, _: f"the {e.part} of the services' own logs was set to {e.value}",
    gateway.QuotaSet: lambda e, names: f"{names.holder(e.holder)} may have {_quota(e)}",
    gateway.AuthzSet: lambda e, _: f"rights are judged by {'roles' if e.mode == 'rbac' else 'ownership'}",
    gateway.WorkspaceSet: lambda e, _: f"workspace '{e.name}' was {_saved_phrase(e)}",
    gateway.WorkspaceRemoved: lambda e, _: f"workspace {e.workspace_id} was removed",
    gateway.ProjectSet: lambda e, _: f"project '{e.name}' was {_saved_phrase(e)}",
    gateway.ProjectRemoved: lambda e, _: f"project {e.project_id} was removed",
    gateway.TrialSourceReported: lambda e, _: (
        f"trial {e.trial_id} {'judges' if e.kind == 'INFERENCE' else 'trains further'} checkpoint "
        f"{e.checkpoint}"
    ),
    gateway.ExperimentMoved: lambda e, _: f"experiment {e.experiment_id} was moved to project {e.project_id}",
    checkpoints.FilesListed: lambda e, _: f"checkpoint {e.uuid} had {len(e.resources)} files left",
    checkpoints.MetadataSet: lambda e, _: f"the metadata of checkpoint {e.uuid} was replaced",
    checkpoints.ModelSet: lambda e, _: f"model '{e.name}' was {_saved_phrase(e)}",
    checkpoints.ModelRemoved: lambda e, _: f"model {e.model_id} was removed",
    checkpoints.VersionSet: lambda e, _: (
        f"checkpoint {e.checkpoint} is version {e.number} of model {e.model_id}"
    ),
    checkpoints.VersionRemoved: lambda e, _: f"version {e.version_id} of model {e.model_id} was removed",
    webhooks.WebhookSet: lambda e, _: f"webhook {e.webhook_id} was set to notify {e.host}",
    webhooks.WebhookRemoved: lambda e, _: f"webhook {e.webhook_id} was removed",
    webhooks.DeliveryDue: _delivery_due,
    webhooks.DeliveryTried: _delivery_tried,
    webhooks.DeliveryGivenUp: lambda e, _: f"a delivery to webhook {e.webhook_id} was given up",
    gateway.TemplateRemoved: lambda e, _: f"template '{e.name}' was removed",
    **dict.fromkeys(
        (owner.CreationKept for owner in (searcher, scheduler, checkpoints, webhooks, gateway)),
        lambda e, _: f"the answer {_number(e.value)} was kept, should its request be repeated",
    ),
}
