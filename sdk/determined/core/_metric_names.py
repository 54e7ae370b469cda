"""Warns a script whose metrics have names that are not stored, or lack the one that the search compares."""

import logging
from collections.abc import Iterable

from det_contracts.reports import MAX_GROUPS_PER_TRIAL, MAX_NAMES_PER_GROUP, RESERVED_GROUPS

logger = logging.getLogger("determined.core")

VALIDATION = "validation"


class MetricNames:
    """The metric names a process has reported, by group, up to the stored limit."""

    def __init__(self, searcher_metric: str | None = None) -> None:
        self._searcher_metric = searcher_metric
        self._names: dict[str, set[str]] = {}
        self._full: set[str] = set()
        self._too_many_groups = False

    def reported(self, group: str, names: Iterable[str]) -> None:
        """Warn once if a group has too many names, and once if there are too many groups."""
        group_names = self._names.get(group)
        # Fast path for almost all calls: a report should take only microseconds.
        if group_names is not None and group_names.issuperset(names):
            return
        if group in self._full:
            return
        if group_names is None and group not in RESERVED_GROUPS and len(self._names) >= MAX_GROUPS_PER_TRIAL:
            self._warn_of_groups(group)
            return
        is_first = group_names is None
        group_names = self._names.setdefault(group, set())
        group_names.update(names)
        if is_first and group == VALIDATION and self._searcher_metric is not None:
            self._warn_of_searcher_metric(self._searcher_metric, group_names)
        if len(group_names) > MAX_NAMES_PER_GROUP:
            self._full.add(group)
            logger.warning(
                "the %s metrics of this trial have more than %d names: further names are neither stored nor "
                "charted, apart from the searcher's metric. Report arrays as files, or under fewer names.",
                group,
                MAX_NAMES_PER_GROUP,
            )

    def _warn_of_searcher_metric(self, metric: str, names: set[str]) -> None:
        if metric in names:
            return
        logger.warning(
            "the configuration names '%s' as searcher.metric, but the first validation metrics have none "
            "of that name; they have %.1000s. Without it, nobody can tell the best trial and the best "
            "checkpoints. Report it, or correct searcher.metric.",
            metric,
            ", ".join(repr(name) for name in sorted(names)) or "none",
        )

    def _warn_of_groups(self, group: str) -> None:
        if self._too_many_groups:
            return
        self._too_many_groups = True
        logger.warning(
            "this trial reports under more than %d groups: metrics of further ones, such as %.100r, are "
            "neither stored nor charted, apart from those of training and validation. Report under fewer "
            "groups, and tell metrics apart by their names.",
            MAX_GROUPS_PER_TRIAL,
            group,
        )
