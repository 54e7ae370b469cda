"""Information about the cluster and the control plane (REST spec, sections 2 and 8)."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from det_contracts import codec
from det_contracts.administration import LOG_LEVELS, RebuildDatabase, RetryDecisions, SetLogging, SkipEvent
from det_contracts.events.metrics import DatabaseCopied
from det_contracts.expconf import mask_secrets
from det_contracts.metrics_shards import FURTHER_SHARDS
from det_contracts.problems import failed_precondition, invalid, unavailable
from services.catalogue import journal, store
from services.kit import logging
from services.kit.archive.log import archive_status
from services.kit.authz.roles import is_rbac
from services.kit.cluster_monitor import OWNERS
from services.kit.jetstream_feed import READ_ERRORS
from services.people.commands.rebuilding import METRICS, REBUILT
from services.rest_requests.api_call import Anybody, Authenticated, UserCall
from services.rest_requests.bodies import MasterConfigBody, RebuildBody, RetryBody, SkipBody
from services.rest_requests.cluster_health import DOWN
from services.rest_requests.settings import Settings
from services.rest_routes.people.oidc import START
from services.rest_routes.present.answers import response_schema
from services.rest_routes.present.records import ServicesProgress
from services.rest_routes.present.services_progress import services_progress
from services.web.errors import RETRY_S
from services.web.query import Flag, FromQuery, Integer, QueryModel
from services.web.routes import Routes


class MasterLogQuery(QueryModel):
    """GET /master/logs"""

    offset: Integer = 0
    limit: Integer = 0
    follow: Flag = False


class ParkedQuery(QueryModel):
    """GET /master/parked"""

    limit: Integer = 100


API_VERSION = "0.25.0"
"""The version of Determined's API that we implement. Clients compare it with their own."""
MAX_UNREADABLE = 1000
PRODUCT = "PRODUCT_COMMUNITY"

router = Routes()
root = Routes()


@router.get("/master", ("anybody", "cluster"))
async def master(call: Anybody) -> Response:
    """The cluster's identity and features. Needs no login."""
    settings = call.backend.settings
    return call.answer(
        {
            "version": API_VERSION,
            "masterId": settings.cluster_id,
            "clusterId": settings.cluster_id,
            "clusterName": settings.cluster_name,
            "telemetryEnabled": False,
            "ssoProviders": _providers(settings),
            "externalLoginUri": "",
            "externalLogoutUri": "",
            "branding": "determined",
            "rbacEnabled": is_rbac(call.catalogue.state),
            "product": PRODUCT,
            "featureSwitches": [],
            "userManagementEnabled": True,
            "strictJobQueueControl": False,
        }
    )


def _providers(settings: Settings) -> list[dict[str, Any]]:
    if not settings.oidc_issuer:
        return []
    return [{"name": settings.oidc_name, "ssoUrl": START, "type": "OIDC", "alwaysRedirect": False}]


@router.get("/master/config", ("administer_cluster", "cluster"))
async def config(call: Authenticated) -> Response:
    """How this gateway was set up, without secrets; for administrators."""
    return call.answer({"config": await _shown_config(call)})


async def _shown_config(call: UserCall) -> dict[str, Any]:
    settings = call.backend.settings
    storage = mask_secrets({"checkpoint_storage": call.backend.storage or {}})["checkpoint_storage"]
    pools = [{"pool_name": row.name, "description": row.description} for row in await call.peers.pools()]
    return {
        "cluster_id": settings.cluster_id,
        "cluster_name": settings.cluster_name,
        "host": settings.host,
        "port": settings.port,
        "checkpoint_storage": storage,
        "resource_pools": pools,
        "log": {"level": logging.OUTPUT.level.lower(), "color": logging.OUTPUT.color},
    }


CHANGEABLE = {"log": {"level", "color"}, "log.level": {"level"}, "log.color": {"color"}}
"""Path of a field mask -> what of the log it means."""


@router.patch("/master/config", ("administer_cluster", "cluster"))
async def change_config(call: Authenticated, body: MasterConfigBody) -> Response:
    """Have the services print their own logs from another level on, or in colours; for administrators."""
    paths = body.field_mask.paths or ["log"]
    if unknown_paths := [path for path in paths if path not in CHANGEABLE]:
        raise invalid(
            f"fieldMask.paths: '{unknown_paths[0][:80]}' cannot be changed while the cluster runs; what can "
            f"be: {', '.join(CHANGEABLE)}. All else is set where the services are started"
        )
    selected_fields = set().union(*(CHANGEABLE[path] for path in paths))
    settings = {
        name: value for name, value in body.config.log.model_dump().items() if name in selected_fields
    }
    await call.peers.command(SetLogging(user=call.user.username, **settings))
    shown = await _shown_config(call)
    # What was decided by another replica may not have come back here yet.
    if (level := settings.get("level")) is not None:
        shown["log"]["level"] = LOG_LEVELS[level.lower()].lower()
    if (color := settings.get("color")) is not None:
        shown["log"]["color"] = color
    return call.answer({"config": shown})


@router.get("/master/logs", ("read_log", "cluster"))
async def logs(call: Authenticated, query: FromQuery[MasterLogQuery]) -> Response:
    """Decisions and observations of the cluster, as sentences."""
    if query.limit < 0:
        raise invalid("Limit must be >= 0")
    part = {"offset": query.offset, "limit": query.limit}
    pages = journal.entries(call.backend.journal, call.catalogue, follow=query.follow, **part)
    if not query.follow:
        return call.stream(pages)
    followers, who = call.backend.limits.log_followers, call.user.username
    await followers.acquire(who)

    async def release() -> None:
        followers.release(who)

    return call.stream(pages, release=release)


@router.get("/master/parked", ("read_log", "cluster"))
async def parked(call: Authenticated, query: FromQuery[ParkedQuery]) -> Response:
    """What cannot be read, decided or processed: messages, records, events (our addition)."""
    limit = query.limit
    if not 0 < limit <= MAX_UNREADABLE:
        raise invalid(f"limit must be 1 to {MAX_UNREADABLE}, not {limit}")
    messages = await call.catalogue.read(lambda connection: store.unreadable_messages(connection, limit + 1))
    parked = call.backend.health.parked()
    standing = call.backend.health.standing()
    passed = {"unreadable": messages[:limit], "more": len(messages) > limit}
    return call.answer(passed | {"parked": parked, "standing": standing})


@router.post("/master/parked/retry", ("administer_cluster", "cluster"))
async def retry_parked(call: Authenticated, body: RetryBody) -> Response:
    """Make a service retry what it could not decide or process (our addition)."""
    await call.peers.command(RetryDecisions(owner=body.program, user=call.user.username))
    return call.answer({})


@router.post("/master/parked/skip", ("administer_cluster", "cluster"))
async def skip_event(call: Authenticated, body: SkipBody) -> Response:
    """Make a service skip, for ever, the event at which it stands still (our addition)."""
    place = body.program, body.stream, body.position
    standing = call.backend.health.standing()
    # Only an event that really stops a service may be skipped: any other place would silently lose a fact.
    standstill = next(
        (entry for entry in standing if (entry["program"], entry["stream"], entry["position"]) == place), None
    )
    if standstill is None:
        raise failed_precondition(
            f"the {body.program[:80]} does not stand still at event {body.position} of {body.stream[:80]}; "
            "see 'det master parked' for what does"
        )
    skip = SkipEvent(
        owner=body.program,
        stream=body.stream,
        position=body.position,
        subject=standstill["subject"],
        error=standstill["error"],
        reason=body.reason,
        user=call.user.username,
    )
    await call.peers.command(skip)
    return call.answer({})


@router.get("/master/rebuild", ("read_log", "cluster"))
async def rebuilds(call: Authenticated) -> Response:
    """Which databases can be rebuilt from the log, and how far running rebuilds are (our addition)."""
    health = call.backend.health
    progress, refused = health.rebuilding(), health.refused_rebuilds()
    programs = sorted([*REBUILT, *[owner for owner in METRICS if await _is_copied(call, owner)]])
    return call.answer(
        {
            "programs": [
                {
                    "program": program,
                    "progress": progress.get(program, ""),
                    "refused": refused.get(program, ""),
                }
                for program in programs
            ]
        }
    )


async def _is_copied(call: UserCall, owner: str) -> bool:
    """Whether the log names a copy of the database of a metrics process."""
    fact = DatabaseCopied(owner=owner, copy="", before="", through={}, size=0, reason="")
    return await call.backend.journal.last(codec.subject_of(fact)) is not None


@router.post("/master/rebuild", ("administer_cluster", "cluster"))
async def rebuild(call: Authenticated, body: RebuildBody) -> Response:
    """Make a service rebuild its database from the log, or from its copy if it is metrics (our addition)."""
    if body.program in METRICS and not await _is_copied(call, body.program):
        raise failed_precondition(
            f"the database of {body.program} cannot be rebuilt: it holds reports and log lines that are no "
            "longer in the broker, and has no copy (STEADFAST_METRICS_STORE). Restore it from a backup "
            "instead"
        )
    await call.peers.command(RebuildDatabase(owner=body.program, user=call.user.username))
    return call.answer({})


@router.get("/master/positions", ("read_log", "cluster"), **response_schema(ServicesProgress))
async def positions(call: Authenticated) -> Response:
    """How far each service has read the log, and how far behind it is (our addition)."""
    progress = await call.peers.log_progress((*OWNERS, *FURTHER_SHARDS))
    # Without an answer, a shard may never have been there. Health names those that are missing.
    shared = {owner: answers for owner, answers in progress.items() if answers or owner in OWNERS}
    return call.answer(services_progress(shared))


@router.get("/master/archive", ("read_log", "cluster"))
async def archive(call: Authenticated) -> Response:
    """Which part of the log was moved out of the broker, and where to (our addition)."""
    try:
        status = await archive_status(call.backend.journal)
    except READ_ERRORS as error:
        raise unavailable(f"the archive cannot be read just now: {error}; try again") from error
    return call.answer(msgspec.to_builtins(status))


@router.get("/master/telemetry", ("logged_in", "cluster"))
async def telemetry(call: Authenticated) -> Response:
    """Telemetry, which is always disabled."""
    return call.answer({"enabled": False})


@root.get("/info", ("anybody", "cluster"))
async def info(call: Anybody) -> Response:
    """The cluster's identity in the older form. Our addition `workers` counts the registered workers."""
    settings = call.backend.settings
    identity: dict[str, Any] = {
        "version": API_VERSION,
        "master_id": settings.cluster_id,
        "cluster_id": settings.cluster_id,
        "cluster_name": settings.cluster_name,
        "telemetry": {"enabled": False, "segment_key": ""},
        "workers": len(call.catalogue.state.workers),
    }
    return call.answer(identity)


@router.get("/master/health", ("anybody", "cluster"))
async def cluster_health(call: Anybody) -> Response:
    """The health of the cluster (our addition): overall status, status of each part, and all problems."""
    return call.answer(call.backend.health.report(call.catalogue.position))


@root.get("/health", ("anybody", "cluster"))
async def health(call: Anybody) -> Response:
    """The same report for monitors that only look at the status code: 503 while the cluster is down."""
    report = call.backend.health.report(call.catalogue.position)
    answer = call.answer(report)
    if report["status"] == DOWN:
        answer.status_code, answer.headers["Retry-After"] = 503, str(RETRY_S)
    return answer
