"""What is there before anything is counted: so and so many of everything that a state can hold."""

from det_contracts import commands
from det_contracts.commands import Password
from det_contracts.creation import Once
from det_contracts.custom_search import CreateTrial as CustomTrial
from det_contracts.events import gateway, scheduler, trial, webhooks, worker
from det_contracts.events.scheduler import PoolSettings, Provider
from det_contracts.expconf import complete
from det_contracts.webhook_commands import SetWebhook
from services.catalogue.domain import small_records as gateway_records
from services.catalogue.trial_sources import MAX_SOURCES
from services.metrics.commands import Settle
from services.metrics.domain.state import DeletedExperiment, EndedTrial, Trimmed

ONE_STEP = {"name": "single", "metric": "loss", "max_length": 100}


def config(search=None, *, pool="default", managed=True, **more):
    return complete(
        {
            "entrypoint": "python3 train.py",
            "searcher": search or ONE_STEP,
            "hyperparameters": {"lr": {"type": "double", "minval": 0, "maxval": 1}},
            "checkpoint_storage": {"type": "shared_fs", "host_path": "/tmp", "save_trial_latest": 1},
            "resources": {"resource_pool": pool},
            **more,
        },
        seed=7,
        name="walks",
        managed=managed,
    )


def random_search(trials, at_once=0):
    search = {"name": "random", "metric": "loss", "max_length": 100, "max_trials": trials}
    return {**search, "max_concurrent_trials": at_once}


class Users:
    """What people, scripts and workers do."""

    def __init__(self, cluster):
        self.cluster = cluster
        self._uuids = 0

    def submit(self, search=None, *, pool="default", once="", **more):
        settings = {k: more.pop(k) for k in ("unmanaged", "source_checkpoint", "request_key") if k in more}
        config_ = config(search, pool=pool, managed=not settings.get("unmanaged"), **more)
        creation = Once(once, once, "d") if once else None
        command = commands.CreateExperiment(
            user="ann", config=config_, original_config="", once=creation, **settings
        )
        return self.cluster.ask(command)

    def trials_of(self, experiment_id):
        return sorted(record.id for record in self.searcher.trials_of(experiment_id))

    @property
    def searcher(self):
        return self.cluster.states["searcher"]

    def change(self, experiment_id, action):
        self.cluster.ask(commands.ChangeExperiment(experiment_id=experiment_id, action=action, user="ann"))

    def here(self, id, slots, pool="default", running=(), session="s"):
        offered = tuple(worker.Slot(n, "cpu", f"{id}-{n}", "CPU") for n in range(slots))
        event = worker.WorkerRegistered(
            worker_id=id,
            session=session,
            pool=pool,
            address=id,
            version="",
            slots=offered,
            reads_after=0,
            running=tuple(running),
        )
        self.cluster.tell(event)
        self.cluster.decide()

    def run_of(self, trial_id):
        return self.searcher.trials[trial_id].allocation_id

    def start(self, trial_id):
        run = self.run_of(trial_id)
        for member in self.cluster.states["scheduler"].allocations[run].members:
            self.cluster.tell(worker.AllocationStarted(member.worker_id, run))
        self.cluster.write(run, 1)
        self.cluster.decide()

    def store(self, trial_id, steps):
        self._uuids += 1
        record = self.searcher.trials[trial_id]
        stored = trial.CheckpointStored(
            trial_id=trial_id,
            experiment_id=record.experiment_id,
            run=record.run,
            task_id=record.task_id,
            allocation_id=record.allocation_id or "",
            uuid=f"c{self._uuids}",
            resources={"model": 7},
            metadata={},
            steps_completed=steps,
        )
        self.cluster.tell(stored)
        self.cluster.decide()
        return stored.uuid

    def complete(self, trial_id):
        record = self.searcher.trials[trial_id]
        done = trial.OperationCompleted(
            trial_id=trial_id, run=record.run, seq=record.seq, length=record.length, metric=0.5
        )
        self.cluster.tell(done)
        self.cluster.decide()

    def leave(self, trial_id, code=0):
        """The script ends and its worker says so."""
        record = self.searcher.trials[trial_id]
        self.cluster.tell(trial.PreemptionAcknowledged(trial_id, record.run))
        self.exit(record.allocation_id, code)

    def exit(self, allocation_id, code=0):
        for member in self.cluster.states["scheduler"].allocations[allocation_id].members:
            event = worker.AllocationExited(
                worker_id=member.worker_id, allocation_id=allocation_id, exit_code=code
            )
            self.cluster.tell(event)
        self.cluster.decide()

    def finish(self, trial_id, *, steps=(50, 100), saves=2):
        """A whole run, from its start to what is settled after its end."""
        self.start(trial_id)
        self.cluster.report(trial_id, steps)
        for number in range(saves):
            self.store(trial_id, steps[number % len(steps)])
        self.complete(trial_id)
        self.leave(trial_id)
        self.settle(trial_id)

    def settle(self, *trial_ids):
        self.cluster.ask(Settle(trial_ids))


class Background(Users):
    """`count` of everything, and one of each thing that holds so many."""

    def __init__(self, cluster, count):
        super().__init__(cluster)
        self.count = count
        # A quota that limits everything and holds up nothing.
        most = {"slots": 10**6, "jobs": 10**6, "storage_bytes": 10**12}
        cluster.ask(commands.SetQuota(holder="workspace-1", **most, user="admin"))
        for number in range(3 * count // 8 + 6):
            self.here(f"w{number}", 8)
            self.here(f"m{number}", 8, pool="mine")
        for part in (
            self._ended, self._live, self._large, self._outside, self._custom, self._people, self._models,
            self._workers, self._tasks, self._webhooks, self._gone, self._under_way,
        ):  # fmt: skip
            part()
        cluster.touched = {owner: {} for owner in cluster.touched}

    def each(self):
        return range(1, self.count + 1)

    def _ended(self):
        """Experiments that are over, half of which are having a checkpoint deleted."""
        self.ended = []
        for number in self.each():
            id = self.submit(once=f"once-{number}", request_key=f":key-{number}")
            (trial_id,) = self.trials_of(id)
            self.finish(trial_id)
            self.ended.append(id)
        rows = list(self.cluster.states["checkpoints"].checkpoints.values())
        for checkpoint in rows[: self.count]:
            if checkpoint.state == "COMPLETED" and not checkpoint.going:
                self.cluster.ask(commands.DeleteCheckpoints(uuids=(checkpoint.uuid,), user="ann"))

    def _live(self):
        """Experiments that run, that are asked to leave, and that wait."""
        self.live, self.between = [], []
        for _ in self.each():
            id = self.submit(source_checkpoint=None)
            (trial_id,) = self.trials_of(id)
            self.start(trial_id)
            self.store(trial_id, 10)
            self.cluster.ask(commands.AskToLeave(allocation_id=self.run_of(trial_id), user="ann"))
            # It gave up, and is waited for.
            record = self.searcher.trials[trial_id]
            self.cluster.tell(trial.ExitedEarly(trial_id, record.run, "INVALID_HP"))
            self.live.append(id)
            self.submit(pool="none")
            self.between.append(self.submit(pool="mine"))
        for id in self.between:
            self.start(*self.trials_of(id))

    def _large(self):
        """One experiment with many live trials, one of which has many checkpoints, validations and runs."""
        self.large = self.submit(random_search(2 * self.count, self.count + 5), pool="mine")
        self.trial, *others = self.trials_of(self.large)
        for trial_id in others:
            self.start(trial_id)
        for _ in range(3):
            self.start(self.trial)
            self.leave(self.trial)
        self.start(self.trial)
        steps = [10 * number for number in self.each()]
        self.cluster.report(self.trial, steps)
        self.cluster.decide()
        for at in steps:
            self.store(self.trial, at)
        self.gone_on = self.run_of(self.trial)

    def _outside(self):
        """One unmanaged experiment with many trials that are heard of."""
        self.outside = self.submit(unmanaged=True)
        for number in self.each():
            self.cluster.ask(
                commands.CreateTrial(
                    experiment_id=self.outside, request_id=f"r{number}", hparams={}, user="ann"
                )
            )
        for trial_id in self.trials_of(self.outside):
            self.cluster.ask(commands.OpenRun(trial_id=trial_id, resume=False, user="ann"))

    def _custom(self):
        """One custom search, whose client has not answered for long."""
        self.custom = self.submit({"name": "custom", "metric": "loss", "unit": "batches"}, pool="none")
        made = tuple(CustomTrial(f"r{number}", {}) for number in self.each())
        self.cluster.ask(
            commands.PostOperations(experiment_id=self.custom, operations=made, triggered_by=1, user="ann")
        )

    def _people(self):
        once = [Once(f"p{number}", f"p{number}", "d") for number in self.each()]
        for number in self.each():
            ask = self.cluster.ask
            user = ask(commands.SetUser(username=f"user{number}", user="admin", once=once[number - 1]))
            ask(commands.SetPassword(user_id=user, password=Password("00", "00"), user="admin"))
            claims = {"username": f"elsewhere{number}", "display_name": "", "groups": (), "admin": None}
            ask(commands.SignIn(issuer="https://i", subject=str(number), provision=True, **claims))
            setting = gateway.Setting("path", "key", "value")
            ask(commands.KeepSettings(user_id=user, settings=(setting,), user="admin"))
            ask(commands.ViewProject(user_id=user, project_id=1, user="admin"))
            group = ask(commands.SetGroup(name=f"group{number}", add=(user,), user="admin"))
            grant = gateway.Grant("Viewer", 1)
            assignments = tuple(
                commands.Assignment(name, grant) for name in (f"user-{user}", f"group-{group}")
            )
            ask(commands.AssignRoles(add=assignments, user="admin"))
            space = ask(commands.SetWorkspace(name=f"space{number}", user="admin"))
            for holder in (f"user-{user}", f"group-{group}", f"workspace-{space}"):
                ask(commands.SetQuota(holder=holder, slots=1, user="admin"))
            ask(commands.SetProject(workspace_id=2, name=f"project{number}", user="admin"))
            ask(commands.SetTemplate(name=f"template{number}", config={}, user="ann"))
            ask(commands.CloseSession(session_id=f"session{number}", user="ann"))
            over = {"opened_at": 0.0, "until": 1.0, "address": "a", "client": "c", "user": "ann"}
            ask(commands.OpenSession(session_id=f"over{number}", user_id=user, **over))
            opened = {"opened_at": 1e10, "until": 2e10, "address": "a", "client": "c", "user": "ann"}
            ask(commands.OpenSession(session_id=f"other{number}", user_id=user, **opened))
            # One user has many.
            ask(commands.OpenSession(session_id=f"first{number}", user_id=1, **opened))
            made = {"user_id": user, "scope": "all", "lives_s": 1e6, "user": "admin"}
            ask(commands.CreateToken(token_id=f"token{number}", name="one", digest=str(number), **made))
        for id in self.ended:
            self.cluster.ask(commands.MoveExperiment(experiment_id=id, project_id=2, user="ann"))

    def _models(self):
        """Models, one of which has many versions."""
        for number in self.each():
            once = Once(f"m{number}", f"m{number}", "d")
            self.cluster.ask(commands.SetModel(name=f"model{number}", user="ann", once=once))
        stored = [
            checkpoint.uuid
            for checkpoint in self.cluster.states["checkpoints"].checkpoints_of_trial(self.trial)
        ]
        for uuid in stored[1:]:
            self.cluster.ask(commands.SetVersion(model_id=1, checkpoint=uuid, user="ann"))
        using = {"kind": "INFERENCE", "user": "ann"}
        for uuid in stored[:MAX_SOURCES]:
            self.cluster.ask(commands.ReportTrialSource(trial_id=self.trial, uuid=uuid, **using))
        for id in self.ended:
            (first, *_) = self.trials_of(id)
            self.cluster.ask(commands.ReportTrialSource(trial_id=first, uuid=stored[0], **using))

    def _workers(self):
        provider = Provider(type="process", min_instances=self.count, max_instances=2 * self.count)
        self.cluster.ask(commands.ConfigurePools(pools={"growing": PoolSettings(provider=provider)}))
        for number in self.each():
            self.here(f"host{number}", 1, pool="hosts")
            self.here(f"gone{number}", 1, pool="hosts")
            self.cluster.tell(worker.WorkerLeft(f"gone{number}", "s"))
        self.cluster.decide()

    def _tasks(self):
        for number in self.each():
            once = Once(f"t{number}", f"t{number}", "d")
            self.cluster.ask(
                commands.SubmitTask(
                    task_id=f"task{number}",
                    kind="COMMAND",
                    user="ann",
                    name="",
                    config={},
                    slots=1,
                    pool="none",
                    once=once,
                )
            )

    def _webhooks(self):
        """One that is told of nothing here, with many deliveries that wait."""
        made = {"kind": "DEFAULT", "host": "h", "url": "u", "signing_key": "k", "user": "admin"}
        once = Once("hook", "hook", "d")
        self.hook = self.cluster.ask(SetWebhook(states=("ERROR",), once=once, **made))
        for number in self.each():
            due = {"webhook_id": self.hook, "occasion": "EXPERIMENT_STATE_CHANGE", "happened_at": 0.0}
            self.cluster.tell(webhooks.DeliveryDue(delivery_id=f"due{number}", reason="", **due))

    def _under_way(self):
        """What others have stated and nobody has decided upon: runs that ended, reports, shares of ranks."""
        self.reporting, *_ = (id for id in self.trials_of(self.large) if id != self.trial)
        for experiment_id in self.live:
            (trial_id,) = self.trials_of(experiment_id)
            run = self.run_of(trial_id)
            command = commands.JoinGather(allocation_id=run, request_id="r", peers=2, data="x", user="ann")
            self.cluster.ask(command)
        for experiment_id in self.between:
            (trial_id,) = self.trials_of(experiment_id)
            ended = scheduler.AllocationEnded(
                allocation_id=self.run_of(trial_id),
                kind="TRIAL",
                trial_id=trial_id,
                run=1,
                outcome="succeeded",
                reason="",
            )
            self.cluster.tell(ended)
        self.cluster.report(self.reporting, [10 * number for number in self.each()], decide=False)

    def _gone(self):
        """What would take long to come by."""
        metrics = self.cluster.states["metrics"]
        for number in self.each():
            metrics.gone[10_000 + number] = DeletedExperiment(10_000 + number)
            metrics.dropped[20_000 + number] = Trimmed(1)
            metrics.ended[30_000 + number] = EndedTrial(30_000 + number)
            used = gateway_records.DeletedExperiment("ann", 1)
            self.cluster.states["gateway"].deleted_experiments[10_000 + number] = used
        for name in ("gateway", "searcher", "scheduler", "checkpoints", "webhooks"):
            state = self.cluster.states[name]
            creations = state.creations
            sample = next(iter(creations.values()), None)
            for number in self.each():
                if sample is not None:
                    creations[f"old{number}"] = sample
                    state.made_at.add(sample.at, f"old{number}")
