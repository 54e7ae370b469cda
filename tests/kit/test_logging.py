"""How a process prints its log, and how an administrator changes it while it runs."""

import json

import pytest
import structlog

from det_contracts.events.gateway import DecisionsRetried, LoggingSet
from services.kit import logging
from services.kit.log_memory import MemoryLog
from tests.kit.test_rounds import draft, run, running, until


@pytest.fixture
def printed(capsys):
    """What was printed since it was asked last; afterwards logs are as before."""
    before = structlog.get_config()
    yield lambda: capsys.readouterr().err
    vars(logging.OUTPUT).update(vars(logging.LogOutput()))
    structlog.configure(**before)


def setting(part, value):
    return LoggingSet(part=part, value=value, reason="asked for by admin")


def test_a_level_counts_for_loggers_that_have_printed_before(printed):
    logging.configure("json", "info", service="it")
    log = structlog.get_logger().bind()
    log.info("first")
    log.debug("unheard")
    logging.OUTPUT.apply(setting("level", "DEBUG"))
    log.debug("heard")
    logging.OUTPUT.apply(setting("level", "ERROR"))
    log.warning("unheard")
    log.error("last")
    records = [json.loads(line) for line in printed().splitlines()]
    assert [(record["event"], record["level"]) for record in records] == [
        ("first", "info"),
        ("heard", "debug"),
        ("last", "error"),
    ]


def test_colors_are_for_people_and_leave_json_alone(printed):
    for form, colored in (("console", True), ("json", False)):
        logging.configure(form, "INFO")
        log = structlog.get_logger().bind()
        logging.OUTPUT.apply(setting("color", "on"))
        log.warning("first")
        assert ("\x1b[" in printed()) is colored
        logging.OUTPUT.apply(setting("color", "off"))
        log.warning("second")
        assert "\x1b[" not in printed()


def test_log_levels_set_before_a_process_started_apply(printed):
    async def work():
        log = MemoryLog()
        logging.configure("console", "INFO")
        await logging.apply_stored_settings(log)
        assert (logging.OUTPUT.level, logging.OUTPUT.color) == ("INFO", False)
        for number, event in enumerate(
            (setting("level", "DEBUG"), setting("color", "on"), setting("level", "ERROR"))
        ):
            await log.append(draft(event, f"stated-{number}"))
        await logging.apply_stored_settings(log)
        assert (logging.OUTPUT.level, logging.OUTPUT.color) == ("ERROR", True)

    run(work)


def test_whoever_folds_the_log_hears_of_it():
    heard = []

    async def work():
        log = MemoryLog()
        async with running(log, apply_logging=heard.append) as runner:
            await log.append(draft(setting("level", "DEBUG"), "stated"))
            await log.append(draft(DecisionsRetried(owner="others", reason="test"), "after"))
            await until(lambda: runner.positions["CONTROL"] >= 2)

    run(work)
    assert heard == [setting("level", "DEBUG")]
