"""What happens to stored checkpoints, as a part of the story."""

from det_contracts import commands
from det_contracts.creation import Once
from det_contracts.events import scheduler


class CheckpointChanges:
    """Checkpoints become versions of models, and are deleted."""

    def registry(self):
        model = self.ask(commands.SetModel(name="fresh", user="ann", once=Once("y", "y", "d")))
        stored = [
            checkpoint.uuid
            for checkpoint in self.cluster.states["checkpoints"].checkpoints_of_trial(self.of.trial)
        ]
        for into, uuid in ((model, stored[-1]), (1, stored[-2])):
            self.ask(commands.SetVersion(model_id=into, checkpoint=uuid, user="ann"))
        number = self.cluster.states["checkpoints"].models[1].numbers
        self.ask(commands.SetVersion(model_id=1, number=number, name="named", user="ann"))
        self.ask(commands.RemoveVersion(model_id=1, number=number, user="ann"))
        self.ask(commands.RemoveModel(model_id=model, user="ann"))
        self.ask(commands.SetMetadata(uuid=stored[0], metadata={"a": 1}, user="ann"))

    def deletion(self):
        """A few checkpoints go, files of one, and then all of an experiment."""
        state = self.cluster.states["checkpoints"]
        first = next(state.checkpoints_of_trial(self.of.trial)).uuid
        self.ask(commands.DeleteCheckpoints(uuids=(first,), globs=("*",), user="ann"))
        task = state.checkpoints[first].task
        self.ask(commands.ListFiles(uuid=first, resources={"model": 3}, task_id=task))
        self._end_deletion(task)
        self.delete_experiment(self.over)

    def delete_experiment(self, experiment_id):
        """Delete an experiment that has ended, with all of its checkpoints."""
        self.change(experiment_id, "delete")
        deletions = self.cluster.states["checkpoints"].deletions
        for task in [id for id in deletions if id.startswith(f"{experiment_id}.")]:
            self._end_deletion(task)

    def _end_deletion(self, task):
        allocation = self.cluster.states["scheduler"].allocations[f"{task}.1"]
        if not allocation.members:
            ended = scheduler.AllocationEnded(
                allocation_id=allocation.id, kind="CHECKPOINT_GC", run=1, outcome="succeeded", reason=""
            )
            self.cluster.tell(ended)
            self.cluster.decide()
        else:
            self.exit(allocation.id, 0)
