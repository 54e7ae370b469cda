"""The metrics service, joined from its parts."""

from __future__ import annotations

from det_contracts import subjects
from services.kit.host import Service
from services.kit.rules import Rules
from services.metrics.answers import ANSWERS
from services.metrics.commands import COMMANDS
from services.metrics.domain import State, evolve
from services.metrics.logs.reading import read_logs
from services.metrics.queries import READS
from services.metrics.react import react
from services.metrics.reading import read_reports
from services.metrics.settling import settle_ended_trials
from services.metrics.store import project

RULES = Rules(
    owner="metrics",
    state=State,
    evolve=evolve,
    react=react,
    commands=COMMANDS,
    answers=ANSWERS,
    streams={
        subjects.CONTROL: (),
        subjects.REPORTS: (),
        subjects.LOGS: (),
    },
    decode={subjects.REPORTS: read_reports, subjects.LOGS: read_logs},
)
SERVICE = Service(RULES, project=project, reads=READS, extra=settle_ended_trials, backlog=500)
