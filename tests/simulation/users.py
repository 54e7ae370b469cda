"""Users: what they submit, and what they do with it. `ACTIONS` is the table to extend."""

import asyncio

from det_contracts.commands import (
    ChangeExperiment,
    ChangeJob,
    ConfigurePools,
    CreateExperiment,
    KillTrial,
    ReviseExperiment,
    SetGroup,
    SetQuota,
    SetUser,
    StopTask,
    SubmitTask,
    SwitchSlot,
    SwitchWorker,
)
from det_contracts.events.scheduler import PoolSettings
from det_contracts.expconf import complete
from det_contracts.problems import Refused
from det_contracts.states import OVER
from tests.simulation.engine import POOL
from tests.simulation.provisioner import growing

SPACE = {
    "lr": {"type": "double", "minval": 0, "maxval": 1},
    "width": {"type": "categorical", "vals": [1, 2]},
}
GRID = {
    "width": {"type": "categorical", "vals": [1, 2, 3]},
    "depth": {"type": "int", "minval": 1, "maxval": 2, "count": 2},
}


def _single(chance):
    return {"name": "single", "max_length": chance.randrange(4, 20)}


def _random(chance):
    return {
        "name": "random",
        "max_length": chance.randrange(2, 12),
        "max_trials": chance.randrange(1, 6),
        "max_concurrent_trials": chance.randrange(0, 4),
    }


def _grid(chance):
    return {
        "name": "grid",
        "max_length": chance.randrange(2, 8),
        "max_concurrent_trials": chance.randrange(0, 4),
    }


def _halving(chance):
    return {
        "name": "async_halving",
        "max_length": chance.randrange(8, 28),
        "max_trials": chance.randrange(3, 9),
        "num_rungs": chance.randrange(1, 4),
        "divisor": chance.choice((2, 3, 4)),
        "max_concurrent_trials": chance.randrange(0, 5),
        "stop_once": chance.random() < 0.4,
    }


def _adaptive(chance):
    return {
        "name": "adaptive_asha",
        "max_length": chance.randrange(8, 28),
        "max_trials": chance.randrange(3, 9),
        "divisor": chance.choice((2, 4)),
        "mode": chance.choice(("aggressive", "standard", "conservative")),
        "max_concurrent_trials": chance.randrange(0, 5),
        "stop_once": chance.random() < 0.3,
    }


def _population(chance):
    return {
        "name": "pbt",
        "max_length": chance.randrange(6, 16),
        "population_size": chance.randrange(2, 5),
        "num_rounds": chance.randrange(1, 4),
    }


def _tpe(chance):
    return {
        "name": "tpe",
        "max_length": chance.randrange(4, 12),
        "max_trials": chance.randrange(2, 6),
        "max_concurrent_trials": chance.randrange(0, 4),
    }


SEARCHES = (_single, _random, _grid, _halving, _halving, _halving, _adaptive, _adaptive, _population, _tpe)


def random_config(chance):
    """A completed configuration of a small experiment."""
    make = chance.choice(SEARCHES)
    return complete(
        {
            "entrypoint": "python3 train.py",
            "searcher": {
                "metric": "loss",
                "smaller_is_better": chance.random() < 0.7,
                **make(chance),
            },
            "hyperparameters": GRID if make is _grid else SPACE,
            "checkpoint_storage": {
                "type": "shared_fs",
                "host_path": "/tmp",
                "save_experiment_best": chance.randrange(2),
                "save_trial_best": chance.randrange(2),
                "save_trial_latest": chance.randrange(2),
            },
            "resources": {
                "slots_per_trial": chance.choice((0, 1, 1, 1, 1, 2, 2, 4, 8)),
                "priority": chance.choice((None, 1, 42, 42, 99)),
                "max_slots": chance.choice((None, None, None, 1, 4)),
                "weight": chance.choice((0.5, 1, 1, 2)),
                "resource_pool": chance.choice(("", "", "", "default", "second")),
            },
            "max_restarts": chance.randrange(3),
        },
        seed=chance.randrange(2**31),
        name="simulated",
    )


# -- what people do: (world, chance) -> (owner, command), or None if there is nothing to do it to


def configure(world, chance):
    """Pools of every kind."""
    pools = {
        name: PoolSettings(
            scheduler=chance.choice(("priority", "priority", "priority", "fair_share", "round_robin")),
            fitting_policy=chance.choice(("best", "worst")),
            allow_heterogeneous_fits=chance.random() < 0.3,
            preemption=chance.random() < 0.7,
            max_aux_containers_per_agent=chance.choice((100, 100, 1)),
            on_lost=chance.choice(("keep", "fence", "fence")),
            fence_after_s=chance.choice((10.0, 25.0, 60.0)),
        )
        for name in ("default", "second")
    }
    return "scheduler", ConfigurePools(pools=growing(world, pools))


def _where_it_grows(world, config):
    """Send most of the work to a growing pool, if there is one."""
    if world.engine is None or world.engine.chance.random() < 0.4:
        return config
    return config | {"resources": config["resources"] | {"resource_pool": POOL}}


def _parent(world, chance):
    """Sometimes a fork: from an experiment, or from a checkpoint of one."""
    trials = [t for t in world.ledger.trials.values() if t.checkpoints]
    if not trials or chance.random() < 0.8:
        return {}
    parent = chance.choice(trials)
    return {"parent_id": parent.experiment.id, "source_checkpoint": parent.checkpoints[-1][1]}


def _large(world, chance, config):
    """Sometimes a configuration near the broker's size limit, if that is small."""
    most = world.plan.limits.stated
    if most > 10_000 or chance.random() < 0.7:
        return config
    blob = "x" * chance.randrange(most // 4, most)
    space = config["hyperparameters"] | {"blob": {"type": "const", "val": blob}}
    return config | {"hyperparameters": space}


def submit(world, chance):
    return "searcher", CreateExperiment(
        user="ann",
        config=_large(world, chance, _where_it_grows(world, random_config(chance))),
        original_config="",
        activate=chance.random() < 0.9,
        **_parent(world, chance),
        request_key=f"key-{world.new_id()}",
    )


def _some_experiment(world, chance):
    """Usually one that is not over."""
    experiments = [
        e for e in world.ledger.experiments.values() if e.state.now != "DELETED" or chance.random() < 0.1
    ]
    open_ = [e for e in experiments if e.state.now not in OVER]
    among = open_ if open_ and chance.random() < 0.85 else experiments
    return chance.choice(among).id if among else None


def change(action):
    def make(world, chance):
        id = _some_experiment(world, chance)
        return id and ("searcher", ChangeExperiment(experiment_id=id, action=action, user="admin"))

    return make


def kill_trial(world, chance):
    trial_ids = list(world.ledger.trials)
    return ("searcher", KillTrial(trial_id=chance.choice(trial_ids), user="admin")) if trial_ids else None


def revise(world, chance):
    id = _some_experiment(world, chance)
    changes = {
        "name": f"named {chance.randrange(100)}",
        "checkpoint_storage.save_trial_best": chance.randrange(3),
    }
    return id and ("searcher", ReviseExperiment(experiment_id=id, changes=changes, user="admin"))


def move_job(world, chance):
    """Change one property of a job, or its place."""
    id, other = _some_experiment(world, chance), _some_experiment(world, chance)
    edit = chance.choice(
        (
            {"priority": chance.choice((0, 1, 20, 42, 99))},
            {"weight": chance.choice((0.0, 0.5, 4.0))},
            {"max_slots": chance.choice((None, 0, 1, 4))},
            {"resource_pool": chance.choice(("default", "second", "nowhere"))},
            {"ahead_of": other},
            {"behind_of": other},
        )
    )
    return id and ("scheduler", ChangeJob(experiment_id=id, user="admin", **edit))


def switch_worker(world, chance):
    worker = chance.choice(list(world.workers.values()))
    enabled, drain = chance.random() < 0.6, chance.random() < 0.5
    return "scheduler", SwitchWorker(worker_id=worker.id, enabled=enabled, drain=drain, user="admin")


def switch_slot(world, chance):
    worker = chance.choice(list(world.workers.values()))
    slot, enabled, drain = (
        chance.randrange(max(worker.slots, 1)),
        chance.random() < 0.6,
        chance.random() < 0.5,
    )
    return "scheduler", SwitchSlot(
        worker_id=worker.id, slot_id=slot, enabled=enabled, drain=drain, user="admin"
    )


def submit_task(world, chance):
    """A user's own command or TensorBoard, which has a job of its own."""
    return "scheduler", SubmitTask(
        task_id=f"own-{world.new_id()}",
        kind=chance.choice(("COMMAND", "COMMAND", "TENSORBOARD")),
        user="eve",
        name="own",
        config={"entrypoint": "sleep 10"},
        slots=chance.choice((0, 0, 1, 1, 2)),
        pool=chance.choice(("default", "default", "second")),
        priority=chance.choice((None, 1, 42, 99)),
    )


def stop_task(world, chance):
    tasks = list(world.ledger.tasks.values())
    return ("scheduler", StopTask(task_id=chance.choice(tasks).task_id, user="eve")) if tasks else None


def move_task(world, chance):
    tasks = list(world.ledger.tasks.values())
    edit = chance.choice(({"priority": 5}, {"max_slots": chance.choice((0, 1))}, {"resource_pool": "second"}))
    id = tasks and chance.choice(tasks).id
    return ("scheduler", ChangeJob(experiment_id=id, user="eve", **edit)) if tasks else None


def limit(world, chance):
    """Set or remove a quota and its holder: submitters become users, and members of a group."""
    kind = chance.choice(("user", "group", "quota", "quota", "quota", "quota"))
    if kind == "user":
        return "gateway", SetUser(username=chance.choice(("ann", "eve")), user="admin")
    members = tuple(sorted(chance.sample((3, 4), chance.randrange(3))))
    if kind == "group":
        group = {"group_id": 2} if world.ledger.groups else {"name": "crew"}
        return "gateway", SetGroup(**group, add=members, remove=tuple({3, 4} - {*members}), user="admin")
    return "gateway", SetQuota(
        holder=chance.choice(("workspace-1", "workspace-1", "user-3", "user-4", "group-2")),
        slots=chance.choice((None, None, 0, 1, 2, 4, 8)),
        jobs=chance.choice((None, None, None, 2, 5)),
        user="admin",
    )


ACTIONS = {
    "pause": (6, change("pause")),
    "activate": (8, change("activate")),
    "cancel": (1, change("cancel")),
    "kill": (1, change("kill")),
    "kill trial": (2, kill_trial),
    "archive": (1, change("archive")),
    "unarchive": (1, change("unarchive")),
    "delete": (2, change("delete")),
    "revise": (1, revise),
    "move job": (6, move_job),
    "switch worker": (2, switch_worker),
    "switch slot": (2, switch_slot),
    "configure": (1, configure),
    "submit task": (4, submit_task),
    "stop task": (2, stop_task),
    "move task": (1, move_task),
}
"""Name to (weight, action)."""


async def act(world, name, make, chance):
    """Ask, and ask again if nobody answered: the second time with the same key."""
    made = make(world, chance)
    if made is None:
        return
    owner, command = made
    for _ in range(3):
        try:
            position, _ = await world.ask(owner, command)
        except Refused as refusal:
            world.tell("user", f"{name} {_short(command)}: {refusal}")
            if refusal.problem.code != "unavailable":
                return
        else:
            world.ledger.count("user actions")
            world.tell("user", f"{name} {_short(command)}: done at {position}")
            return


def _short(command):
    shown = {n: getattr(command, n) for n in command.__struct_fields__ if "config" not in n}
    return ", ".join(f"{n}={v}" for n, v in shown.items() if n != "user")


async def administrator(world):
    """Sets and removes quotas, if there is a gateway to ask."""
    chance = world.plan.chance("quotas")
    while world.of("gateway") and "users" not in world.plan.off:
        await asyncio.sleep(chance.expovariate(1 / (3 * world.plan.user_every_s)))
        await act(world, "limit", limit, chance)


async def people(world):
    """Submit until enough has happened, with other actions in between."""
    chance = world.plan.chance("users")
    loop = asyncio.get_running_loop()
    busy = [loop.create_task(act(world, "configure", configure, chance))] if chance.random() < 0.8 else []
    busy += [loop.create_task(act(world, "submit", submit, chance))]
    while True:
        await asyncio.sleep(chance.expovariate(1 / world.plan.user_every_s))
        open_ = [e for e in world.ledger.experiments.values() if e.state.now not in OVER]
        if len(open_) < chance.choice((1, 3, 5)):
            busy.append(loop.create_task(act(world, "submit", submit, chance)))
        elif "users" not in world.plan.off:
            weights = [often for often, _ in ACTIONS.values()]
            name = chance.choices(list(ACTIONS), weights)[0]
            busy.append(loop.create_task(act(world, name, ACTIONS[name][1], chance)))
