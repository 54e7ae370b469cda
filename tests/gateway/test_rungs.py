"""Rungs of a search, and trials without their statistics."""

from det_contracts import queries
from services.searcher.app import RULES
from tests.gateway import stories as story


def test_rungs_by_trial(gateway):
    gateway.log_in("admin")
    gateway.apply(story.created(1))
    entries = [[7, 0.5, "promoted"], [8, None, "left"]]
    gateway.peers.values[queries.SearchRungs] = {
        "brackets": [[{"length": 4, "waiting": 1, "count": 2, "entries": entries}]]
    }
    ((rung,),) = gateway.get("/api/v1/experiments/1/rungs")["brackets"]
    assert rung["entries"] == [
        {"trialId": 7, "metric": 0.5, "verdict": "promoted"},
        {"trialId": 8, "metric": None, "verdict": "left"},
    ]
    assert (rung["length"], rung["waiting"], rung["count"]) == (4, 1, 2)
    assert gateway.send("GET", "/api/v1/experiments/5/rungs").status_code == 404
    assert queries.SearchRungs in RULES.answers


def test_lean_trials_have_no_statistics(gateway):
    gateway.log_in("admin")
    gateway.apply(story.worker_here(), story.created(1), story.trial_created(1), *story.running(1))
    summary = {"validation": {"loss": {"count": 1, "last": 1.0, "type": "number"}}}
    gateway.peers.values[queries.TrialSummaries] = {
        "1": {"total_batches": 3, "best_validation": None, "latest_validation": None, "summary": summary}
    }
    path = "/api/v1/experiments/1/trials"
    assert gateway.get(path)["trials"][0]["summaryMetrics"] != {}
    assert gateway.get(path, lean=True)["trials"][0]["summaryMetrics"] == {}
