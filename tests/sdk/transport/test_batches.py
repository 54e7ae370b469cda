"""Which of the waiting reports go out together, while the script goes on reporting."""

from determined import ClusterInfo, TrialInfo
from determined.transport.bus import BATCH_REPORTS, BATCH_VALUES, BusTransport
from determined.transport.protocol import MetricReport


def transport():
    own = TrialInfo(1, 1, 1, {}, {"searcher": {"metric": "loss"}}, 0, 1, False)
    info = ClusterInfo("http://x", "c", "a", [0], "1.t", "1.t.1", "s", "TRIAL", trial_info=own)
    return BusTransport(info, None)


def waiting(made, metrics):
    made._reports.append((0.0, MetricReport("training", 1, metrics)))


class Interrupted(dict):
    """Metrics at whose size another thread's report comes in between."""

    def __init__(self, made):
        super().__init__(loss=1.0)
        self._made = made

    def __len__(self):
        waiting(self._made, {"loss": 2.0})
        return 1


def test_reports_may_come_while_a_batch_is_chosen():
    made = transport()
    for _ in range(3):
        waiting(made, Interrupted(made))
    assert made._fitting() == 3
    assert len(made._reports) == 6


def test_a_batch_ends_by_reports_and_by_values():
    made = transport()
    for _ in range(BATCH_REPORTS + 5):
        waiting(made, {"loss": 1.0})
    assert made._fitting() == BATCH_REPORTS
    wide = transport()
    for _ in range(3):
        waiting(wide, dict.fromkeys(range(BATCH_VALUES // 2 + 1), 1.0))
    assert wide._fitting() == 1
