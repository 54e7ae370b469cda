"""A little of everything that can happen: every kind of event, command and query."""

from det_contracts import commands, queries
from det_contracts.creation import Once
from det_contracts.custom_search import CreateTrial as CustomTrial
from det_contracts.custom_search import SetProgress
from det_contracts.events import archive, scheduler, trial, worker
from det_contracts.events.metrics import DatabaseCopied
from det_contracts.events.scheduler import PoolSettings, Provider
from det_contracts.ids import TASK_PORTS
from det_contracts.provisioning import ReportWorkers, SeenWorker
from services.metrics.commands import Drop, Join, Share, Trim
from services.searcher.unmanaged import ReportScriptHeard, ReportScriptSilent
from tests.walks.administration import Administration
from tests.walks.background import Users
from tests.walks.checkpoint_changes import CheckpointChanges
from tests.walks.failing_runs import FailingRuns

SEARCH = {"name": "adaptive_asha", "metric": "loss", "max_length": 16, "max_trials": 4}


class Story(FailingRuns, Administration, CheckpointChanges, Users):
    """Plays all of it. `of`: the background."""

    def __init__(self, cluster, of):
        super().__init__(cluster)
        self._uuids = 10_000_000
        self.of = of
        self.ask, self.query = cluster.ask, cluster.query
        for part in (
            self.hosts, self.growth, self.large, self.searches, self.one_experiment, self.failures,
            self.outside, self.custom, self.people, self.registry, self.tasks,
            self.webhooks, self.queries_, self.data, self.deletion,
        ):  # fmt: skip
            part()

    def hosts(self):
        self.cluster.tell(archive.SegmentSealed(stream="CONTROL", first=1, last=2, header="x", size=3))
        copied = DatabaseCopied(owner="metrics", copy="x", before="", through={}, size=3, reason="due")
        self.cluster.tell(copied)
        settings = PoolSettings(scheduler="priority", preemption=True)
        self.ask(commands.ConfigurePools(pools={"story": settings}))
        self.here("a", 4, pool="story")
        self.here("b", 1, pool="story")
        for enabled in (False, True):
            self.ask(commands.SwitchSlot(worker_id="b", slot_id=0, enabled=enabled, user="admin"))
            self.ask(commands.SwitchWorker(worker_id="b", enabled=enabled, drain=True, user="admin"))

    def growth(self):
        """A pool asks for a worker, has it, gives it back; its engine is away and fails meanwhile."""
        count = self.of.count
        provider = Provider(
            type="process", min_instances=count, max_instances=2 * count, max_idle_s=1.0, max_starting_s=1.0
        )
        self.ask(commands.ConfigurePools(pools={"growing": PoolSettings(provider=provider)}))
        self.ask(ReportWorkers(pool="growing", problem="away"))
        id = self.submit(pool="growing")
        (trial_id,) = self.trials_of(id)
        self.engine_says("growing-1", "over")
        self.later(20.0)
        self.engine_says("growing-2", "running")
        self.here("growing-2", 1, pool="growing")
        self.start(trial_id)
        self.complete(trial_id)
        self.leave(trial_id)
        self.later(20.0)
        self.engine_says("growing-3", "running")
        self.later(20.0)
        self.engine_says("growing-3", "over")
        self.query(queries.Provisioning())

    def later(self, seconds):
        self.cluster.now += seconds
        self.cluster.decide()

    def engine_says(self, id, phase):
        self.ask(ReportWorkers(pool="growing", workers=(SeenWorker(worker_id=id, phase=phase),)))

    def large(self):
        """What happens in an experiment of many trials, to a trial of many checkpoints and runs."""
        id = self.of.trial
        run = self.run_of(id)
        self.cluster.report(id, [5, 7])
        self.store(id, 5)
        self.cluster.tell(trial.Progressed(id, self.searcher.trials[id].run, 7.0))
        self.cluster.tell(trial.StatusSet(id, self.searcher.trials[id].run, "training"))
        self.cluster.write(run, 2)
        # The next run starts over at a step that the one before had reached, but for the last few.
        self.leave(id)
        self.start(id)
        self.cluster.report(id, [10 * self.of.count - 15])
        self.cluster.report(self.of.reporting, [10**6], decide=False)
        self.complete(id)
        self.leave(id)
        self.settle(id)

    def searches(self):
        id = self.submit(SEARCH, pool="story")
        while self.searcher.has_live_trials(id):
            some = [record for record in self.searcher.trials_of(id, "running")]
            for record in some:
                self.start(record.id)
                while not self.searcher.trials[record.id].complete:
                    self.complete(record.id)
                self.leave(record.id)
                self.settle(record.id)
        self.rungs = id

    def one_experiment(self):
        id = self.submit(pool="story", once="the key", request_key=":named")
        (trial_id,) = self.trials_of(id)
        self.start(trial_id)
        uuids = [self.store(trial_id, at) for at in (10, 20)]
        self.ask(commands.ReviseExperiment(experiment_id=id, changes={"name": "new"}, user="ann"))
        self.ask(commands.ChangeJob(experiment_id=id, user="ann", priority=7))
        self.query(queries.PreviewChange(commands.ChangeJob(experiment_id=id, user="ann", priority=9)))
        for action in ("pause", "activate"):
            self.change(id, action)
        self.leave(trial_id)
        self.start(trial_id)
        source = self.submit(pool="none", source_checkpoint=uuids[0])
        other = self.submit(pool="story")
        self.ask(commands.ChangeJob(experiment_id=other, user="ann", ahead_of=id))
        run = self.run_of(trial_id)
        for number in (1, 2):
            share = {"allocation_id": run, "peers": 1, "data": "x", "user": "ann"}
            self.ask(commands.JoinGather(request_id=f"r{number}", **share))
        self.ask(commands.MoveExperiment(experiment_id=id, project_id=3, user="ann"))
        for kind in ("INFERENCE", "FINE_TUNING"):
            self.ask(commands.ReportTrialSource(trial_id=trial_id, uuid=uuids[0], kind=kind, user="ann"))
        self.finish(trial_id, steps=(30, 40))
        for action in ("archive", "unarchive"):
            self.change(id, action)
        for experiment_id in (source, other):
            self.change(experiment_id, "kill")
        self.cluster.decide()
        self.over = id

    def outside(self):
        id = self.of.outside
        make = commands.CreateTrial(
            experiment_id=id, request_id="fresh", hparams={}, user="ann", once=Once("u", "u", "d")
        )
        self.ask(make)
        fresh = max(self.trials_of(id))
        self.ask(commands.OpenRun(trial_id=fresh, resume=False, user="ann"))
        self.cluster.tell(trial.Heartbeat(fresh, 1), trial.Progressed(fresh, 1, 5.0))
        self.cluster.pass_time(301)
        self.ask(ReportScriptSilent(fresh, 1, 301.0))
        self.ask(ReportScriptHeard(fresh, 1))
        self.ask(commands.EndTrial(trial_id=fresh, state="COMPLETED", user="ann"))
        few = self.submit(unmanaged=True)
        self.ask(commands.CreateTrial(experiment_id=few, request_id="r", hparams={}, user="ann"))
        (trial_id,) = self.trials_of(few)
        self.ask(commands.OpenRun(trial_id=trial_id, resume=False, user="ann"))
        self.ask(commands.EndTrial(trial_id=trial_id, state="COMPLETED", user="ann"))
        self.ask(commands.OpenRun(trial_id=trial_id, resume=True, user="ann"))

    def custom(self):
        method = self.searcher.searches[self.of.custom].method
        post = commands.PostOperations(
            experiment_id=self.of.custom,
            operations=(CustomTrial("fresh", {}), SetProgress(0.5)),
            triggered_by=min(event.id for event in method.queue),
            user="ann",
        )
        self.ask(post)
        self.query(queries.SearcherEvents(self.of.custom))

    def tasks(self):
        submit = {"kind": "COMMAND", "user": "ann", "name": "", "config": {}, "slots": 1}
        for name in ("mine", "other"):
            once = Once(name, name, "d")
            self.ask(commands.SubmitTask(task_id=name, pool="story", once=once, **submit))
        self.cluster.tell(worker.AllocationStarted("b", "mine.1"), worker.AllocationStarted("a", "mine.1"))
        self.ask(commands.Serve(allocation_id="mine.1", address=f"b:{TASK_PORTS.start}", user="ann"))
        self.ask(commands.StateIdle(task_id="mine", idle=True, within_s=1e9, user="ann"))
        self.ask(commands.StopTask(task_id="mine", user="ann"))
        two = {"resource_pool": "story", "slots_per_trial": 8}
        self.here("c", 4, pool="story")
        for name in ("mine", "other"):
            allocation = self.cluster.states["scheduler"].allocations.get(f"{name}.1")
            if allocation is not None and allocation.members:
                self.ask(commands.StopTask(task_id=name, user="ann"))
                self.exit(allocation.id, 137)
        number = self.cluster.states["scheduler"].tasks["other"].number
        self.cluster.tell(scheduler.TaskForgotten("other", number, "it ended long ago"))
        self.here("z", 1, pool="story")
        self.cluster.tell(worker.WorkerLeft("z", "s"), scheduler.WorkerForgotten("z", "away for long"))
        gang = self.submit(pool="story", resources=two)
        (trial_id,) = self.trials_of(gang)
        self.start(trial_id)
        self.ask(commands.MarkDaemon(allocation_id=self.run_of(trial_id), rank=1, user="ann"))
        self.exit(self.run_of(trial_id), 0)

    def queries_(self):
        ask = self.query
        ask(queries.SearchProgress([self.over, self.rungs]))
        ask(queries.SearchState(self.over))
        ask(queries.SearchRungs(self.rungs))
        ask(queries.Waiting(self.over))
        ask(queries.Jobs("story"))
        ask(queries.Pools())
        ask(queries.Fits(pool="story", slots=1))
        ask(queries.JobsUsed())
        ask(queries.StorageUsed())
        ask(queries.StorageRefusal(trial_id=self.of.trial, size_bytes=1))
        ask(queries.ClusterState())
        ask(queries.ReportVerdict(self.of.trial, 1))
        ask(queries.Checkpoints(experiment_id=self.over))
        ask(
            queries.PreviewRetention(experiment_id=self.over, experiment_best=0, trial_best=1, trial_latest=1)
        )

    def data(self):
        """What is trimmed, and what is refused of reports."""
        self.ask(Trim(1, "old"))
        settled = [id for id in self.cluster.states["metrics"].settled][:2]
        self.ask(Drop(tuple(settled), 5, "old"))
        id = self.submit(pool="story")
        (trial_id,) = self.trials_of(id)
        self.start(trial_id)
        self.cluster.report(trial_id, [10])
        self.cluster.report(trial_id, [-1])
        self.finish(trial_id, steps=(90, 100))
        # No trial is as new as those that a second metrics process would have.
        self.ask(Share(2, first_trial=10**9, first_experiment=10**9))
        self.ask(Join(1, 2))
