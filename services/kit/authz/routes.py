"""The part of the rights table about requests: the permission each route needs, and on what kind of thing.

`~` stands for `/api/v1`. The routes are listed under their permission and kind of thing; the thing is the one
named in the path (`needs.py` says by which parameter). Things named in a request body are checked by the
route itself and by the owner of the fact (`commands.py`).

GET requests only read. Routes with other methods that only read are marked `reads`.
"""

from __future__ import annotations

from services.kit.authz.permissions import Kind, Permission

ROUTES: dict[tuple[Permission, Kind], str] = {
    ("anybody", "cluster"): """
        POST ~/auth/login
        GET ~/auth/oidc/start
        GET ~/auth/oidc/callback
        POST ~/auth/oidc/token
        GET ~/master
        GET ~/master/health
        GET ~/openapi.json
        GET /info
        GET /health
        GET /docs
        GET /
        GET /det
        GET /det/{rest:path}
        GET /det/assets/{name}
        GET /det/interactive/{task_id}/{rest:path}
        GET /dashboard
        GET /dashboard/{rest:path}
        GET /experiments
        GET /experiments/{rest:path}
        GET /projects
        GET /projects/{rest:path}
        GET /trials
        GET /trials/{rest:path}
        GET /models
        GET /models/{rest:path}
        GET /jobs
        GET /jobs/{rest:path}
        GET /clusters
        GET /clusters/{rest:path}
        GET /login
        GET /login/{rest:path}
        GET /settings
        GET /settings/{rest:path}
    """,
    ("logged_in", "cluster"): """
        GET ~/me
        GET ~/experiment-config/fields
        GET ~/auth/user
        POST ~/auth/logout
        GET ~/users
        GET ~/users/setting
        GET ~/users/{username}/by-username
        GET ~/users/{user_id}
        GET ~/master/telemetry
        GET ~/permissions/summary
        GET ~/agents
        GET ~/agents/{agent_id}
        GET ~/agents/{agent_id}/slots
        GET ~/agents/{agent_id}/slots/{slot_id}
        GET ~/cluster/slots
        GET ~/cluster/away
        GET ~/cluster/use
        GET ~/resource-pools
        GET ~/resource-pools/{name}/workspace-bindings
        GET ~/job-queues/stats
        POST ~/preview-hp-search reads
        POST /searcher/preview reads
        GET ~/user/projects/activity
        GET /debug/prom/metrics
        GET /prom/det-state-metrics
        GET /det/live
        GET ~/groups
        POST ~/groups/search reads
        GET ~/groups/{group_id}
        GET ~/roles
        POST ~/roles/search reads
        POST ~/roles/search/by-ids reads
        POST ~/roles/search/by-assignability reads
        GET ~/roles/search/by-user/{user_id}
        GET ~/roles/search/by-group/{group_id}
        GET ~/quotas
    """,
    ("own_account", "cluster"): """
        POST ~/users/activity
        POST ~/users/setting
        POST ~/users/setting/reset
        GET,POST ~/tokens
        DELETE ~/tokens/{token_id}
    """,
    ("own_account", "user"): """
        PATCH ~/users/{user_id}
        POST ~/users/{user_id}/password
        GET,DELETE ~/users/{user_id}/sessions
        DELETE ~/users/{user_id}/sessions/{session_id}
    """,
    ("administer_users", "cluster"): """
        POST ~/users
        POST ~/groups
        PUT,DELETE ~/groups/{group_id}
    """,
    ("assign_roles", "body"): """
        POST ~/roles/add-assignments
        POST ~/roles/remove-assignments
    """,
    ("administer_cluster", "cluster"): """
        GET,PATCH ~/master/config
        PUT,DELETE ~/quotas/{holder}
        POST,PUT,DELETE ~/resource-pools/{name}/workspace-bindings
        POST ~/agents/{agent_id}/enable
        POST ~/agents/{agent_id}/disable
        POST ~/agents/{agent_id}/slots/{slot_id}/enable
        POST ~/agents/{agent_id}/slots/{slot_id}/disable
        GET,POST ~/webhooks
        GET,DELETE ~/webhooks/{webhook_id}
        POST ~/webhooks/{webhook_id}/test
        POST ~/master/parked/retry
        POST ~/master/parked/skip
        POST ~/master/rebuild
        GET ~/webhooks/{webhook_id}/deliveries
    """,
    ("read_log", "cluster"): """
        GET ~/cluster/usage
        GET ~/resources/allocation/raw
        GET ~/resources/allocation/aggregated
        GET /resources/allocation/raw
        GET /resources/allocation/aggregated
        GET /resources/allocation/allocations-csv
        GET ~/master/logs
        GET ~/master/parked
        GET ~/master/rebuild
        GET ~/master/positions
        GET ~/master/archive
        GET ~/master/audit
        GET ~/master/audit/export
        GET ~/events
        GET ~/events/{position}
    """,
    ("view", "listed"): """
        GET ~/experiments
        GET ~/experiments-search
        GET ~/experiment/labels
        GET ~/experiments/metrics-stream/metric-names
        GET ~/trials/metrics/trial_metrics
        GET ~/trials/metrics/training_metrics
        GET ~/trials/metrics/validation_metrics
        GET ~/trials/time-series
        GET ~/series
        GET ~/models
        GET ~/model/labels
        GET ~/model/checkpoints
        GET ~/commands
        GET ~/tensorboards
        GET ~/notebooks
        GET ~/shells
        GET ~/tasks
        GET ~/tasks/count
        GET /tasks
        GET ~/job-queues
        GET ~/job-queues-v2
        POST ~/job-queues/preview reads
        GET ~/templates
        GET ~/workspaces
        GET ~/live
        GET ~/why/{kind}/{id}
    """,
    ("view", "workspace"): """
        GET ~/workspaces/{id}
        GET ~/workspaces/{id}/projects
        GET ~/roles/workspace/{workspace_id}
        GET ~/workspaces/{id}/available-resource-pools
        POST ~/workspaces/{id}/pin
        POST ~/workspaces/{id}/unpin
    """,
    ("view", "project"): """
        GET ~/projects/{id}
        GET ~/projects/{id}/columns
        GET ~/projects/{id}/experiments/metric-ranges
    """,
    ("view", "experiment"): """
        GET ~/experiments/{experiment_id}
        GET ~/experiments/{experiment_id}/searcher_events
        GET ~/experiments/{experiment_id}/model_def
        GET ~/experiments/{experiment_id}/file_tree
        POST ~/experiments/{experiment_id}/file reads
        GET ~/experiments/{experiment_id}/searcher/best_searcher_validation_metric
        GET ~/experiments/{experiment_id}/validation-history
        GET ~/experiments/{experiment_id}/metrics-stream/batches
        GET ~/experiments/{experiment_id}/metrics-stream/trials-snapshot
        GET ~/experiments/{experiment_id}/metrics-stream/trials-sample
        GET ~/experiments/{experiment_id}/trials
        GET ~/experiments/{experiment_id}/checkpoints
        GET ~/experiments/{experiment_id}/rungs
        GET ~/experiments/{experiment_id}/timeline
        GET /experiments/{experiment_id}/model_def
        GET /experiments/{experiment_id}/preview_gc
    """,
    ("view", "trial"): """
        GET ~/trials/{trial_id}
        GET ~/trials/{trial_id}/workloads
        GET ~/trials/{trial_id}/checkpoints
        GET ~/trials/{trial_id}/metrics/export
        GET ~/trials/{trial_id}/profiler/available_series
        GET ~/trials/{trial_id}/profiler/metrics
        GET ~/trials/{trial_id}/logs
        GET ~/trials/{trial_id}/logs/fields
        GET ~/trials/{trial_id}/logs/page
        GET ~/trials/{trial_id}/logs/summary
        GET ~/trials/{trial_id}/logs/cause
        GET ~/trials/{trial_id}/logs/download
    """,
    ("view", "task"): """
        GET ~/tasks/{task_id}
        GET ~/tasks/{task_id}/logs
        GET ~/tasks/{task_id}/logs/fields
        GET ~/tasks/{task_id}/logs/page
        GET ~/tasks/{task_id}/logs/summary
        GET ~/tasks/{task_id}/logs/cause
        GET ~/tasks/{task_id}/logs/download
        GET ~/commands/{id}
        GET ~/tensorboards/{id}
        GET ~/notebooks/{id}
        GET ~/shells/{id}
    """,
    ("view", "page"): """
        DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT /proxy/{task_id} reads
        DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT /proxy/{task_id}/{rest:path} reads
    """,
    ("view", "checkpoint"): """
        GET ~/checkpoints/{uuid}
        GET ~/checkpoints/{uuid}/trial-source-info-metrics
        GET /checkpoints/{uuid}
    """,
    ("view", "model"): """
        GET ~/models/{name}
        GET ~/models/{name}/versions
        GET ~/models/{name}/versions/{number}
        GET ~/models/{name}/versions/{number}/trial-source-info-metrics
    """,
    ("view", "template"): """
        GET ~/templates/{name:path}
    """,
    ("create", "body"): """
        POST ~/experiments
        PUT ~/experiments/by-external-id/{external_id:path}
        POST ~/models
    """,
    ("create_task", "body"): """
        POST ~/commands
        POST ~/tensorboards
        POST ~/notebooks
        POST ~/shells
    """,
    ("edit", "body"): """
        POST ~/templates
    """,
    ("edit", "template"): """
        POST,PUT,PATCH,DELETE ~/templates/{name:path}
    """,
    ("edit", "experiment"): """
        PATCH ~/experiments/{experiment_id}
    """,
    ("edit", "checkpoint"): """
        POST ~/checkpoints/{uuid}/metadata
    """,
    ("edit", "model"): """
        PATCH ~/models/{name}
        POST ~/models/{name}/versions
        PATCH ~/models/{name}/versions/{number}
    """,
    ("control", "body"): """
        POST ~/experiments/activate
        POST ~/experiments/pause
        POST ~/experiments/cancel
        POST ~/experiments/kill
        POST ~/experiments/archive
        POST ~/experiments/unarchive
        POST ~/experiments/move
        POST ~/job-queues
    """,
    ("control", "experiment"): """
        POST ~/experiments/{experiment_id}/activate
        POST ~/experiments/{experiment_id}/pause
        POST ~/experiments/{experiment_id}/cancel
        POST ~/experiments/{experiment_id}/kill
        POST ~/experiments/{experiment_id}/archive
        POST ~/experiments/{experiment_id}/unarchive
        POST ~/experiments/{experiment_id}/move
        POST ~/experiments/{experiment_id}/searcher_operations
    """,
    ("control", "trial"): """
        POST ~/trials/{trial_id}/kill
    """,
    ("control_task", "task"): """
        POST ~/commands/{id}/kill
        POST ~/commands/{id}/set_priority
        POST ~/tensorboards/{id}/kill
        POST ~/tensorboards/{id}/set_priority
        POST ~/notebooks/{id}/kill
        POST ~/notebooks/{id}/set_priority
        PUT ~/notebooks/{id}/report_idle
        POST ~/shells/{id}/kill
        POST ~/shells/{id}/set_priority
    """,
    ("control", "model"): """
        POST ~/models/{name}/archive
        POST ~/models/{name}/unarchive
        POST ~/models/{name}/move
    """,
    ("delete", "body"): """
        DELETE ~/experiments/delete
        DELETE ~/checkpoints
        POST ~/checkpoints/rm
    """,
    ("delete", "experiment"): """
        DELETE ~/experiments/{experiment_id}
    """,
    ("delete", "model"): """
        DELETE ~/models/{name}
        DELETE ~/models/{name}/versions/{number}
    """,
    ("speak", "body"): """
        POST ~/checkpoints
        PATCH ~/checkpoints
        POST ~/trials
        PUT ~/trials
        POST ~/trials/profiler/metrics
        POST ~/trial-source-info
        POST /task-logs
    """,
    ("speak", "trial"): """
        PATCH ~/trials/{trial_id}
        POST ~/trials/{trial_id}/start
        POST ~/trials/{trial_id}/metrics
        POST ~/trials/{trial_id}/training_metrics
        POST ~/trials/{trial_id}/validation_metrics
        GET ~/trials/{trial_id}/searcher/operation
        GET ~/trials/{trial_id}/storage-refusal
        POST ~/trials/{trial_id}/searcher/completed_operation
        POST ~/trials/{trial_id}/progress
        POST ~/trials/{trial_id}/early_exit
        POST ~/trials/{trial_id}/runner/metadata
    """,
    ("speak", "run"): """
        GET ~/allocations/{allocation_id}/signals/preemption
        POST ~/allocations/{allocation_id}/signals/ack_preemption
        POST ~/allocations/{allocation_id}/signals/pending_preemption
        POST ~/allocations/{allocation_id}/proxy_address
        POST ~/allocations/{allocation_id}/resources/{resources_id}/daemon
        GET ~/allocations/{allocation_id}/resources/{resources_id}/rendezvous
        POST ~/allocations/{allocation_id}/all_gather
        POST ~/allocations/{allocation_id}/notify_container_running
        POST ~/allocations/{allocation_id}/waiting
        POST ~/allocations/{allocation_id}/ready
    """,
    ("create_workspace", "cluster"): """
        POST ~/workspaces
    """,
    ("control_workspace", "workspace"): """
        PATCH,DELETE ~/workspaces/{id}
        POST ~/workspaces/{id}/archive
        POST ~/workspaces/{id}/unarchive
    """,
    ("create_project", "workspace"): """
        POST ~/workspaces/{id}/projects
    """,
    ("edit_project", "project"): """
        POST,PUT ~/projects/{id}/notes
        PATCH ~/projects/{id}
    """,
    ("control_project", "project"): """
        DELETE ~/projects/{id}
        POST ~/projects/{id}/archive
        POST ~/projects/{id}/unarchive
        POST ~/projects/{id}/move
    """,
}
