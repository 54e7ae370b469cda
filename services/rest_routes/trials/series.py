"""Metrics as downsampled series for charts, and as full exports (our addition; web UI spec, section 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from pydantic import Field
from starlette.responses import Response

from det_contracts import queries
from det_contracts.problems import invalid
from services.catalogue import report_export
from services.catalogue.single_reports import report_count
from services.rest_requests.api_call import Authenticated, UserCall
from services.rest_requests.streaming import Stream, prefetch_first
from services.rest_routes.trials import curve_queries as curves
from services.web.query import NOTHING, FromQuery, Grouped, Integer, Integers, Number
from services.web.routes import Routes

router = Routes()
MAX_BUCKETS = 10_000
"""Maximum number of buckets per series."""
MAX_BUCKETS_PER_QUERY = 25_000
"""Maximum number of buckets in one answer of the metrics service, if each metric is in one group only."""


class SeriesQuery(Grouped):
    """GET /series"""

    trial_ids: Integers = NOTHING
    names: list[str] = NOTHING
    x: str = "batches"
    first: Number = Field(None, alias="from")
    last: Number = Field(None, alias="to")
    width: Integer = 1000


class ExportQuery(Grouped):
    """GET /trials/{trial_id}/metrics/export"""

    format: str = ""


NAMES = {"trial_id": "trialId", "non_finite": "nonFinite"}


@router.get("/series", ("view", "listed"))
async def series(call: Authenticated, query: FromQuery[SeriesQuery]) -> Response:
    """Curves of trials in at most `width` buckets each, over batches, epoch, time or any metric.

    `det_contracts.queries.Buckets` describes the content of a bucket.
    """
    await call.catalogue.evicted.load(("trials", id) for id in query.trial_ids)
    ids = [call.catalogue.trial(id).id for id in dict.fromkeys(query.trial_ids)]
    names = list(dict.fromkeys(query.names))
    call.check_view("trial", *ids)
    if not ids or not names:
        raise invalid("trialIds must name at least one trial, and names at least one metric")
    width = query.width
    if not 0 < width <= MAX_BUCKETS:
        raise invalid(f"width must be from 1 to {MAX_BUCKETS}, not {width}")
    first, last = query.first, query.last
    if first is not None and last is not None and last < first:
        raise invalid(f"from and to must be a range, not {first} to {last}")
    buckets = queries.Buckets(
        trial_ids=[],
        names=names,
        group=query.metric_group or None,
        x=query.x or "batches",
        first=first,
        last=last,
        width=width,
    )
    return await call.stream_list("series", _series(call, ids, buckets))


async def _series(
    call: UserCall, ids: list[int], buckets: queries.Buckets
) -> AsyncIterator[list[dict[str, Any]]]:
    trials_per_query = max(1, MAX_BUCKETS_PER_QUERY // (buckets.width * len(buckets.names)))
    # One query at a time, since each occupies a reader of the metrics service.
    for some in curves.split_ids(ids, trials_per_query):
        rows = await call.peers.query(msgspec.structs.replace(buckets, trial_ids=some))
        yield [{NAMES.get(name, name): value for name, value in row.items()} for row in rows]
        call.recheck()


@router.get("/trials/{trial_id}/metrics/export", ("view", "trial"))
async def export(call: Authenticated, trial_id: int, query: FromQuery[ExportQuery]) -> Response:
    """Export a trial's reports as one table: CSV, or Parquet if pyarrow is installed."""
    trial = call.catalogue.trial(trial_id)
    form = report_export.find_format(query.format or "csv")
    group = query.metric_group or None
    summary = (await call.peers.summaries([trial.id])).get(trial.id)
    columns = report_export.metric_columns(summary.summary if summary else {}, group)
    if form is report_export.PARQUET:
        report_export.check_parquet_size(columns, await report_count(call.peers, trial.id, group))
    # An error of the first page still gets its status; later ones can only break off the file.
    pages = await prefetch_first(call.peers.reports([trial.id], group, archived=False))
    headers = {"content-disposition": f'attachment; filename="trial-{trial.id}-metrics.{form.suffix}"'}
    return Stream(form.write(columns, pages), call=call, media_type=form.media_type, headers=headers)
