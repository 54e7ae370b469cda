"""A custom search method: keep the better half, train it twice as far, and so on.

    python search.py        # with a cluster running: `make up`

It can be stopped at any time; started again, it continues where it was.
"""

import json
import logging
import random
import uuid
from pathlib import Path

from determined import searcher

TRIALS, FIRST_LENGTH = 8, 4


class Halving(searcher.SearchMethod):
    """Plain successive halving: a round is over when all its trials have reported."""

    def __init__(self, seed=7):
        self.random = random.Random(seed)
        self.length = FIRST_LENGTH
        self.waiting = set()
        self.reported = {}

    def initial_operations(self, searcher_state):
        operations = []
        for _ in range(TRIALS):
            id = uuid.UUID(int=self.random.getrandbits(128), version=4)
            hparams = {"lr": 10 ** self.random.uniform(-4, 0), "hidden": self.random.choice([8, 16, 32])}
            self.waiting.add(str(id))
            operations += [searcher.Create(id, hparams), searcher.ValidateAfter(id, self.length)]
        return operations

    def on_trial_created(self, searcher_state, request_id):
        return []

    def on_validation_completed(self, searcher_state, request_id, metric, train_length):
        self.reported[str(request_id)] = metric
        return self._next_round(str(request_id))

    def on_trial_exited_early(self, searcher_state, request_id, exited_reason):
        self.reported.pop(str(request_id), None)
        return self._next_round(str(request_id))

    def on_trial_closed(self, searcher_state, request_id):
        over = len(searcher_state.trials_closed) >= TRIALS
        return [searcher.Shutdown()] if over else []

    def _next_round(self, done):
        self.waiting.discard(done)
        if self.waiting:
            return []
        ranked = sorted(self.reported, key=lambda id: self.reported[id])
        keep = ranked[: len(ranked) // 2]
        self.length *= 2
        self.waiting, self.reported = set(keep), {}
        going = [searcher.Close(uuid.UUID(id)) for id in ranked if id not in keep]
        return going + [searcher.ValidateAfter(uuid.UUID(id), self.length) for id in keep]

    def progress(self, searcher_state):
        return len(searcher_state.trials_closed) / TRIALS

    def save_method_state(self, path):
        state = {"length": self.length, "waiting": sorted(self.waiting), "reported": self.reported}
        (path / "halving.json").write_text(json.dumps(state))

    def load_method_state(self, path):
        state = json.loads((path / "halving.json").read_text())
        self.length, self.waiting, self.reported = state["length"], set(state["waiting"]), state["reported"]


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    here = Path(__file__).parent
    runner = searcher.LocalSearchRunner(Halving(), here / "search_state")
    id = runner.run(str(here / "config.yaml"), model_dir=str(here / "model"))
    print(f"experiment {id} is over; see 'det e describe {id}'")
