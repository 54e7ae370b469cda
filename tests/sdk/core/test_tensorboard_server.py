"""When an unused TensorBoard ends."""

import pytest

from determined.exec import _tensorboard_server
from determined.exec._tensorboard_server import Use, end_when_idle
from tests.fixtures.own_time import set_time


class Ended(Exception):
    """Stands in for the end of the process."""


def test_each_request_counts_and_is_answered(monkeypatch):
    now = [100.0]
    use = Use(lambda: now[0])
    app = use.seen_by(lambda environ, start_response: [environ["body"]])
    assert use.left_s(60) == 60
    now[0] = 150.0
    assert app({"body": b"curves"}, None) == [b"curves"]
    assert use.left_s(60) == 60
    now[0] = 215.0
    assert use.left_s(60) == -5


def test_it_ends_once_it_was_unused_for_long_enough(monkeypatch, caplog):
    now, naps = [0.0], []
    use = Use(lambda: now[0])
    app = use.seen_by(lambda environ, start_response: [])

    def nap(seconds):
        naps.append(seconds)
        now[0] += seconds
        if len(naps) == 1:  # somebody has looked, ten seconds before the end
            now[0] -= 10
            app({}, None)
            now[0] += 10

    def leave(code):
        raise Ended(code)

    set_time(monkeypatch, _tensorboard_server, sleep=nap)
    monkeypatch.setattr(_tensorboard_server.os, "_exit", leave)
    with caplog.at_level("INFO"), pytest.raises(Ended, match="0"):
        end_when_idle(use, 60.0)
    assert naps == [60.0, 50.0]
    assert "nobody has looked at this TensorBoard for 60 s" in caplog.text
