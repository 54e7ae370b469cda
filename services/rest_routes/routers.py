"""Every router of the REST API, in the order in which a request is matched."""

from __future__ import annotations

from services.kit.authz.needs import Row
from services.rest_routes.checkpoints import checkpoints, models, retention, storing
from services.rest_routes.cluster import allocated, bindings, cluster, master, observing, queue, usage
from services.rest_routes.experiments import (
    code,
    custom_search,
    events,
    experiments,
    preview,
    revising,
    searching,
    unmanaged,
    why,
)
from services.rest_routes.logs import log_causes, log_pages, logs, task_logs
from services.rest_routes.pages import document, live, page
from services.rest_routes.people import activity, audit, auth, groups, oidc, quotas, roles, sessions, users
from services.rest_routes.tasks import allocations, own_tasks, proxy, tasks
from services.rest_routes.trials import (
    curves,
    metrics,
    profiling,
    reporting,
    script,
    series,
    trial_sources,
    trials,
)
from services.rest_routes.workspaces import templates, webhooks, workspaces
from services.web import errors

# Metrics come before trials, because `/trials/metrics/...` would otherwise match a trial's route.
API_ROUTES = (
    auth.router,
    oidc.router,
    sessions.router,
    users.router,
    activity.router,
    groups.router,
    roles.router,
    master.router,
    audit.router,
    searching.router,
    revising.router,
    custom_search.router,
    code.router,
    experiments.router,
    metrics.router,
    curves.router,
    series.router,
    profiling.router,
    reporting.router,
    script.router,
    storing.router,
    allocations.router,
    unmanaged.router,
    trial_sources.router,
    trials.router,
    checkpoints.router,
    models.router,
    logs.router,
    log_pages.router,
    log_causes.router,
    own_tasks.router,
    tasks.router,
    cluster.router,
    usage.router,
    allocated.router,
    queue.router,
    bindings.router,
    quotas.router,
    templates.router,
    webhooks.router,
    workspaces.router,
    preview.router,
    why.router,
    events.router,
    live.router,
    document.router,
)
"""Routes below `/api/v1`, in the order in which a request is matched."""
OTHER_ROUTES = (
    master.root,
    tasks.root,
    task_logs.root,
    preview.root,
    checkpoints.root,
    code.root,
    retention.root,
    document.root,
    observing.root,
    allocated.root,
    proxy.root,
    page.root,
)
"""Routes that name their whole path."""


def rights_table() -> dict[tuple[str, str], Row]:
    """What each route needs, by method and path: the part of the rights table about requests."""
    table: dict[tuple[str, str], Row] = {}
    for prefix, parts in ((errors.API, API_ROUTES), ("", OTHER_ROUTES)):
        for part in parts:
            for route, row in part.rows(prefix):
                if route in table:
                    # Requests would reach the first, and the second would say who may make them.
                    raise ValueError(f"{' '.join(route)} is declared twice")
                table[route] = row
    return table
