"""Pages with the largest and the worst that users have: nothing leaves the window or is out of reach."""

import pytest

from tests.fixtures.browser import MARKS, SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.outside import Outside

pytestmark = [*MARKS, pytest.mark.timeout(1800)]
NAME = "<b onclick=alert(1)>" + "n" * 3980
METRICS = 3000
TRIALS = 2000
LINES = 400_000
SCRIPT = f"""
import determined as det

with det.core.init() as core:
    for steps in range(1, 4):
        values = {{f"group{{n % 30}}/metric-{{n}}-" + "m" * 60: n / steps for n in range({METRICS})}}
        core.train.report_training_metrics(steps, values)
        core.train.report_validation_metrics(steps, {{"loss": 1 / steps}})
    for op in core.searcher.operations():
        op.report_completed(1.0)
print("x" * 100_000)
for n in range({LINES}):
    print("line", n, "ERROR" if n % 50_000 == 0 else "INFO")
"""
CONFIG = """
entrypoint: python3 run.py
max_restarts: 0
hyperparameters: {lr: 0.1}
searcher: {name: single, metric: loss, max_length: {batches: 3}}
"""
WIDTHS = (390, 1280, 1440, 1920)
# Of what acts: the head's buttons, a row's, and those of charts.
OUT_OF_REACH = """
() => [".acts", "td.act", ".chart header", ".toolbar"]
  .flatMap(place => [...document.querySelectorAll(`main ${place} .btn`)])
  .filter(one => one.checkVisibility())
  .filter(one => {
    const box = one.getBoundingClientRect();
    return box.left < -1 || box.right > innerWidth + 1;
  })
  .map(one => one.getAttribute("aria-label") || one.textContent)
"""


@pytest.fixture
def hostile(cluster, tmp_path_factory):
    """One experiment with everything, and one with many trials."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "run.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text(CONFIG)
    large = cluster.create("config.yaml", folder)
    labels = [f"tag-{n}" for n in range(40)]
    many = Outside(cluster, "many-trials", trials=TRIALS)
    for trial in many.trials[::100]:
        many.report(trial, 1, "validation", loss=float(trial))
    cluster.wait_for_end(large, within_s=900)
    cluster.api(
        "PATCH", f"experiments/{large}", json={"name": NAME, "labels": labels, "description": NAME[:1000]}
    )
    return large, many.id


def test_nothing_leaves_the_window_and_all_acts_are_in_reach(cluster, signed_in, hostile):
    large, many = hostile
    trial = cluster.first_trial(large)
    page = signed_in(cluster)
    failures = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("dialog", lambda dialog: failures.append(dialog.message))
    paths = (
        "/dashboard",
        "/experiments",
        *(
            f"/experiments/{large}/{tab}"
            for tab in ("overview", "hyperparameters", "metrics", "logs", "story")
        ),
        f"/experiments/{large}/trials/{trial}/overview",
        *(f"/experiments/{many}/{tab}" for tab in ("overview", "hyperparameters", "trials")),
        f"/experiments/compare?e={large},{many}",
        f"/experiments/new?from={large}",
        "/jobs",
        "/clusters",
    )
    for path in paths:
        page.set_viewport_size({"width": WIDTHS[0], "height": 844})
        page.goto(f"/det{path}")
        page.locator("main h1, main h2").first.wait_for(timeout=120 * SECONDS)
        page.wait_for_selector(".skeleton", state="detached", timeout=120 * SECONDS)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 850})
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                failures.append(f"{path} at {width}: {over} pixels beyond the window")
            failures += [f"{path} at {width}: {one} is out of reach" for one in page.evaluate(OUT_OF_REACH)]
    assert failures == []
