"""The walk from a state back to what it came of, over histories made by hand."""

from det_contracts.envelope import Recorded
from det_contracts.events import Decision, checkpoints, gateway, scheduler, searcher, trial, worker
from services.why.chain import chain, newest_steps
from services.why.event_descriptions import describe
from services.why.history import Cause, Entity, History
from services.why.subject import Subject, current_state_events
from tests.gateway import stories

ALL = [
    *(Entity("experiment", id) for id in (1, 2)),
    *(Entity("trial", id) for id in (1, 2, 3)),
    *(Entity("deletions", id) for id in (1, 2)),
]


class Story:
    """Events one after the other; each of them has its position as id."""

    def __init__(self):
        self.events = []

    def add(self, *events, actor="searcher", cause=""):
        for event in events:
            at = len(self.events) + 1
            self.events.append(Recorded(at, event, str(at), actor, 1_700_000_000.0 + at, cause))
        return len(self.events)

    def history(self, *but):
        history = History()
        for thing in [*ALL, *self.allocations()]:
            if thing not in but:
                history.add(thing, ())
        history.add(Cause("", 0), self.events)
        return history

    def allocations(self):
        ids = {id for r in self.events if (id := getattr(r.event, "allocation_id", ""))}
        return [Entity("allocation", id) for id in ids]

    def begin(self, experiment_id=1):
        user = "user:ada"
        self.add(stories.created(experiment_id), actor=user, cause="request")
        return self.add(
            searcher.ExperimentActivated(experiment_id, "submitted by ada"), actor=user, cause="request"
        )

    def open(self, id, experiment_id=1):
        """A trial that asks for its first run."""
        self.add(
            stories.trial_created(id, experiment_id),
            searcher.OperationSet(id, 1, 4, "the first length that the search asks of it"),
            stories.run_requested(id, experiment_id),
        )

    def start(self, id, experiment_id=1, run=1, cause=""):
        self.add(stories.assigned(id, 0, experiment_id, run), actor="scheduler", cause=cause)
        self.add(stories.started(id, experiment_id, run), actor="worker:w-1")

    def leave(self, id, experiment_id=1, run=1, exit_code=0):
        allocation = f"{stories.task(id, experiment_id)}.{run}"
        self.add(
            worker.AllocationExited(worker_id="w-1", allocation_id=allocation, exit_code=exit_code),
            actor="worker:w-1",
        )
        return self.add(stories.allocation_ended(id, experiment_id, run), actor="scheduler")


def subject(kind, id, state="COMPLETED", **of):
    return Subject(kind=kind, id=str(id), state=state, **({"experiment_id": 1} | of))


def of_trial(id, run=1, experiment_id=1, state="COMPLETED"):
    allocation = f"{stories.task(id, experiment_id)}.{run}"
    return subject("trial", id, state, trial_id=id, allocation_ids=(allocation,), experiment_id=experiment_id)


def event_names(made, subject):
    """Names of the events of the chain, newest first; asides in brackets."""
    history = made.history()
    explanation = chain(history, current_state_events(history, subject))
    assert not history.missing
    by_place = {r.position: type(r.event).__name__ for r in made.events}
    return [f"({by_place[s.position]})" if s.aside else by_place[s.position] for s in explanation.steps]


BEGIN = ["TrialCreated", "ExperimentActivated", "ExperimentCreated"]


def killed():
    made = Story()
    made.begin()
    made.open(1)
    made.start(1)
    made.add(
        searcher.ExperimentStopping(1, "STOPPING_KILLED", "killed by ada"),
        actor="user:ada",
        cause="request-2",
    )
    made.add(searcher.StopRequested(trial_id=1, allocation_id="1.r1.1", kill=True, reason="killed by ada"))
    made.add(scheduler.KillRequested("1.r1.1", "killed by ada"), actor="scheduler")
    made.leave(1, exit_code=137)
    made.add(stories.trial_ended(1, "CANCELED", "killed by ada"))
    made.add(searcher.ExperimentEnded(1, "CANCELED", "killed by ada"))
    return made


def test_a_killed_trial_leads_back_to_who_killed_it_and_no_further():
    assert event_names(killed(), of_trial(1)) == [
        "TrialEnded",
        "AllocationEnded",
        "AllocationExited",
        "KillRequested",
        "StopRequested",
        "ExperimentStopping",
    ]


def test_each_step_says_when_who_and_why_in_words():
    history = killed().history()
    steps = chain(history, current_state_events(history, of_trial(1))).steps
    assert [(s.actor, s.what, s.reason) for s in (steps[0], steps[2], steps[-1])] == [
        ("searcher", "trial 1 was canceled", "killed by ada"),
        ("worker:w-1", "run 1 of trial 1 left w-1 with exit code 137", ""),
        ("user:ada", "experiment 1 was to be canceled", "killed by ada"),
    ]
    assert [s.because for s in steps[:2]] == [(steps[1].position,), (steps[2].position,)]
    assert (steps[2].about.kind, steps[2].about.id) == ("allocation", "1.r1.1")
    assert steps[0].at > steps[-1].at


def test_a_killed_experiment_was_ended_by_a_person():
    assert event_names(killed(), subject("experiment", 1)) == ["ExperimentEnded", "ExperimentStopping"]
    assert event_names(killed(), subject("job", "experiment-1")) == ["ExperimentEnded", "ExperimentStopping"]


def preempted_for_a_promoted_trial():
    """Trial 2 is promoted and takes the slot of trial 1, which waits again."""
    made = Story()
    made.begin()
    made.open(2)
    made.start(2)
    made.add(trial.OperationCompleted(trial_id=2, run=1, seq=1, length=4, metric=0.93), actor="trial:2")
    made.add(searcher.TrialIdled(2, 1, False, "it waits for others to be compared with"))
    freed = made.leave(2)
    made.add(searcher.RunEnded(trial_id=2, run=1, restarts=0, reason="exit code 0"))
    made.open(1)
    made.start(1, cause=str(freed))
    made.add(trial.OperationCompleted(trial_id=3, run=1, seq=1, length=4, metric=0.5), actor="trial:3")
    made.add(
        searcher.OperationSet(2, 2, 16, "the search wants it trained further"), cause=str(len(made.events))
    )
    made.add(stories.run_requested(2, run=2, reason="the search wants it trained to length 16"))
    made.add(
        scheduler.PreemptRequested(
            allocation_id="1.r1.1", reason="slots wanted by job 9 (priority 10)", wanted_by="1.r2.2"
        ),
        actor="scheduler",
    )
    made.leave(1)
    made.add(searcher.RunEnded(trial_id=1, run=1, restarts=0, reason="preempted"))
    made.add(stories.run_requested(1, run=2))
    return made


PROMOTED = [
    "RunRequested",
    "OperationSet",
    "(OperationCompleted)",
    "OperationCompleted",
    "OperationSet",
    *BEGIN,
]


def test_a_preempted_run_leads_to_the_report_that_promoted_its_rival():
    made = preempted_for_a_promoted_trial()
    run = subject("allocation", "1.r1.1", "TERMINATED", trial_id=1, allocation_ids=("1.r1.1",))
    assert event_names(made, run) == ["AllocationEnded", "AllocationExited", "PreemptRequested", *PROMOTED]
    history = made.history()
    steps = chain(history, current_state_events(history, run)).steps
    assert steps[2].what == "run 1 of trial 1 was asked to save and leave its slots to run 2 of trial 2"
    assert steps[2].reason == "slots wanted by job 9 (priority 10)"
    assert "the script of trial 2 reported 0.93 for operation 1" in [s.what for s in steps]


def test_a_waiting_trial_tells_why_it_has_to_run_again():
    waiting = of_trial(1, run=2, state="QUEUED")
    expected = ["RunRequested", "RunEnded", "AllocationEnded", "AllocationExited", "PreemptRequested"]
    assert event_names(preempted_for_a_promoted_trial(), waiting) == [*expected, *PROMOTED]


def test_slots_come_of_the_request_and_by_the_way_of_who_left():
    made = preempted_for_a_promoted_trial()
    made.events = made.events[:17]
    running = of_trial(1, state="RUNNING")
    names = event_names(made, running)
    assert names[:5] == [
        "AllocationStarted",
        "AllocationAssigned",
        "RunRequested",
        "OperationSet",
        "TrialCreated",
    ]
    assert names[5:] == ["(AllocationEnded)", "ExperimentActivated", "ExperimentCreated"]


def test_a_paused_trial_leads_to_the_pause_whether_it_ran_or_waited():
    made = Story()
    made.begin()
    made.open(1)
    made.open(2)
    made.start(1)
    made.add(searcher.ExperimentPaused(1, "paused by ada"), actor="user:ada", cause="request-2")
    for id in (1, 2):
        made.add(
            searcher.StopRequested(
                trial_id=id, allocation_id=f"1.r{id}.1", kill=False, reason="paused by ada"
            )
        )
    made.add(scheduler.PreemptRequested(allocation_id="1.r1.1", reason="paused by ada"), actor="scheduler")
    made.leave(1)
    made.add(searcher.RunEnded(trial_id=1, run=1, restarts=0, reason="exit code 0"))
    made.add(stories.allocation_ended(2), actor="scheduler")
    assert event_names(made, of_trial(1, state="PAUSED")) == [
        "RunEnded",
        "AllocationEnded",
        "AllocationExited",
        "PreemptRequested",
        "StopRequested",
        "ExperimentPaused",
    ]
    assert event_names(made, of_trial(2, state="PAUSED")) == [
        "AllocationEnded",
        "StopRequested",
        "ExperimentPaused",
    ]


def test_a_lost_worker_ends_what_ran_on_it():
    made = Story()
    made.begin()
    made.open(1)
    made.start(1)
    made.add(scheduler.WorkerLost("w-9", "no sign of life for 30 s"), actor="scheduler")
    made.add(scheduler.WorkerLost("w-1", "no sign of life for 30 s"), actor="scheduler")
    made.add(scheduler.WorkerLost("w-8", "no sign of life for 30 s"), actor="scheduler")
    ended = scheduler.AllocationEnded(
        allocation_id="1.r1.1", kind="TRIAL", trial_id=1, run=1, outcome="worker_lost", reason="w-1 was lost"
    )
    made.add(ended, actor="scheduler")
    history = made.history()
    run = subject("allocation", "1.r1.1", "TERMINATED", trial_id=1, allocation_ids=("1.r1.1",))
    assert [s.what for s in chain(history, current_state_events(history, run)).steps] == [
        "run 1 of trial 1 was lost with its agent",
        "agent w-1 was given up for lost",
    ]


def test_a_crash_has_no_cause_but_its_start():
    made = Story()
    made.begin()
    made.open(1)
    made.start(1)
    made.leave(1, exit_code=3)
    made.add(stories.trial_ended(1, "ERROR", "exit code 3"))
    assert event_names(made, of_trial(1)) == [
        "TrialEnded",
        "AllocationEnded",
        "AllocationExited",
        "AllocationStarted",
        "AllocationAssigned",
        "RunRequested",
        "OperationSet",
        *BEGIN,
    ]


def test_a_deleted_checkpoint_tells_who_made_it_and_why_it_went():
    made = Story()
    made.begin()
    made.open(1)
    made.start(1)
    made.add(stories.stored(1, "uuid-1", 4), actor="trial:1")
    done = made.add(searcher.ExperimentEnded(1, "COMPLETED", "the search is complete"))
    made.add(
        checkpoints.DeletionRequested(
            task_id="1.gc-1", experiment_id=1, uuids=("uuid-1",), reason="save_trial_best: 0"
        ),
        actor="checkpoints",
        cause=str(done),
    )
    made.add(stories.deleted("uuid-1"), actor="checkpoints")
    checkpoint = subject("checkpoint", "uuid-1", "DELETED", trial_id=1)
    assert event_names(made, checkpoint)[:4] == [
        "DeletionFinished",
        "DeletionRequested",
        "ExperimentEnded",
        "CheckpointStored",
    ]
    kept_checkpoint = subject("checkpoint", "uuid-2", trial_id=1)
    assert event_names(made, kept_checkpoint) == []


def test_a_decision_without_a_table_of_its_own_is_followed_by_its_cause():
    made = Story()
    made.begin()
    last = made.add(stories.trial_ended(1))
    made.add(searcher.ExperimentStopping(1, "STOPPING_COMPLETED", "the search is complete"), cause=str(last))
    made.add(searcher.ExperimentEnded(1, "COMPLETED", "the search is complete"))
    assert event_names(made, subject("experiment", 1)) == [
        "ExperimentEnded",
        "ExperimentStopping",
        "TrialEnded",
    ]


def test_what_is_missing_is_named():
    made = killed()
    history = History()
    chain(history, current_state_events(history, of_trial(1)))
    assert history.missing == {Entity("trial", 1), Entity("allocation", "1.r1.1")}
    stopping = Story()
    stopping.add(searcher.ExperimentStopping(1, "STOPPING_ERROR", "all trials failed"), cause="far away")
    history = stopping.history()
    assert len(chain(history, current_state_events(history, subject("experiment", 1))).steps) == 1
    assert history.missing == {Cause("far away", 1)}
    history.add(Cause("far away", 1), ())
    history.missing.clear()
    chain(history, current_state_events(history, subject("experiment", 1)))
    assert not history.missing
    assert made.history(Entity("experiment", 1)).missing == set()


def test_long_chains_are_cut_at_the_old_end():
    made = Story()
    made.begin()
    made.open(1)
    for seq in range(1, 60):
        made.add(trial.OperationCompleted(trial_id=1, run=1, seq=seq, length=seq, metric=1.0))
        made.add(searcher.OperationSet(1, seq + 1, seq + 1, "the search wants it trained further"))
    made.add(searcher.TrialStopping(1, "STOPPING_CANCELED", "canceled"))
    history = made.history()
    explanation = chain(history, [made.events[-2]], max_steps=10)
    assert explanation.more
    assert [s.position for s in explanation.steps] == list(
        range(len(made.events) - 1, len(made.events) - 11, -1)
    )


def test_the_whole_story_is_in_order_without_what_only_frames_it():
    made = killed()
    made.add(Decision("searcher", 1, 1, "r"))
    history = made.history()
    whole = newest_steps(history, 100)
    assert [s.position for s in whole.steps] == list(range(1, len(made.events)))
    assert not whole.more
    assert [s.position for s in newest_steps(history, 2).steps] == [
        len(made.events) - 2,
        len(made.events) - 1,
    ]
    assert newest_steps(history, 2).more


def test_a_description_counts_in_words_and_names_no_key():
    def says(event):
        return describe(event, History()).what

    assert says(trial.Progressed(1, 1, 1.0)) == "trial 1 had trained 1 unit"
    assert says(trial.Progressed(1, 1, 2.5)) == "trial 1 had trained 2.5 units"
    creation_kept = gateway.CreationKept("r", "294e9d56-6715", "digest", 7, "the request carried a key")
    assert says(creation_kept) == "the answer 7 was kept, should its request be repeated"


def test_a_description_names_users():
    def says(event):
        return describe(event, History({7: "ann"}.get)).what

    assert says(gateway.ProjectViewed(7, 3, "opened")) == "user ann opened project 3"
    assert says(gateway.ProjectViewed(8, 3, "opened")) == "user 8 opened project 3"
    assert says(gateway.RolesSet("user-7", (), "asked")) == "user ann holds no role"
    assert says(gateway.RolesSet("group-7", (), "asked")) == "group 7 holds no role"
