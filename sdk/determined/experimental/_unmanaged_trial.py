"""Registers the experiment and the trial of a script that runs off cluster (`core_v2`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from determined import _info, yamlfile

if TYPE_CHECKING:
    from determined.experimental.core_v2 import DefaultConfig, UnmanagedConfig
    from determined.transport.rest import Session

_SEARCHER = {"name": "single", "metric": "unmanaged", "max_length": 100_000_000}
"""Searcher section for a script that does not say how far it trains."""


def registered(session: Session, defaults: DefaultConfig, unmanaged: UnmanagedConfig) -> _info.ClusterInfo:
    """Create or find the experiment and trial of this script, and start the trial."""
    body = {"config": yamlfile.dump(_config(defaults, unmanaged)), "unmanaged": True}
    if unmanaged.external_experiment_id:
        name = quote(unmanaged.external_experiment_id, safe="")
        answer = session.put(f"/api/v1/experiments/by-external-id/{name}", body)
    else:
        answer = session.post("/api/v1/experiments", body)
    id, resumes = int(answer["experiment"]["id"]), bool(unmanaged.external_trial_id)
    hparams = defaults.hparams or {}
    trial_body: dict[str, Any] = {"experimentId": id, "hparams": hparams, "unmanaged": True}
    if resumes:
        named = {"externalTrialId": unmanaged.external_trial_id, "createTrialRequest": trial_body}
        trial = session.put("/api/v1/trials", named)["trial"]
    else:
        trial = session.post("/api/v1/trials", trial_body)["trial"]
    begun = session.post(f"/api/v1/trials/{trial['id']}/start", {"trialId": trial["id"], "resume": resumes})
    return _cluster_info(session, answer["config"], id, trial, begun, hparams)


def _config(defaults: DefaultConfig, unmanaged: UnmanagedConfig) -> dict[str, Any]:
    fields = {
        "name": defaults.name,
        "data": defaults.data,
        "description": defaults.description,
        "labels": defaults.labels,
        "workspace": unmanaged.workspace,
        "project": unmanaged.project,
    }
    return {
        **{field: value for field, value in fields.items() if value is not None},
        "searcher": defaults.searcher or _SEARCHER,
    }


def _cluster_info(
    session: Session,
    config: dict[str, Any],
    experiment_id: int,
    trial: dict[str, Any],
    begun: dict[str, Any],
    hparams: dict[str, Any],
) -> _info.ClusterInfo:
    run, task = int(begun["trialRunId"]), trial["taskId"]
    return _info.ClusterInfo(
        master_url=session.master,
        cluster_id="",
        agent_id="",
        slot_ids=[],
        task_id=task,
        allocation_id=f"{task}.{run}",
        session_token="",
        task_type="TRIAL",
        latest_checkpoint=begun.get("latestCheckpoint") or None,
        trial_info=_info.TrialInfo(
            trial_id=int(trial["id"]),
            experiment_id=experiment_id,
            trial_seed=int((config.get("reproducibility") or {}).get("experiment_seed", 0)),
            hparams=hparams,
            config=config,
            steps_completed=int(begun.get("stepsCompleted") or 0),
            trial_run_id=run,
            debug=False,
        ),
        rendezvous_info=_info.RendezvousInfo(["127.0.0.1"], 0, [1]),
        resources_info=_info.ResourcesInfo([]),
    )
