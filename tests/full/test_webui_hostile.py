"""What nobody should send, on every page: huge names, HTML, thousands of metrics and trials, a long log."""

import re

import pytest

from tests.fixtures.browser import MARKS, SECONDS, show
from tests.fixtures.browser import browser as browser
from tests.fixtures.browser import signed_in as signed_in
from tests.fixtures.local_cluster import wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = MARKS

EVIL = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>{{7*7}}'
NAME = EVIL + "n" * (2000 - len(EVIL))
"""As long as a name may be."""
METRICS, TRIALS, LINES, LONG_LINE = 3000, 2000, 400_000, 100_000
SIZES = (390, 1280, 1440, 1920)
REPORTS = f"""
import determined as det

EVIL = {EVIL!r}
with det.core.init() as core:
    for step in range(1, 4):
        names = (f"{{EVIL}}{{at}}/norm" if at % 2 else f"layer.{{at}}" for at in range({METRICS}))
        many = {{name: step / (at + 1) for at, name in enumerate(names)}}
        core.train.report_training_metrics(steps_completed=step, metrics=many)
    core.train.report_validation_metrics(steps_completed=3, metrics={{"loss": 0.5}})
    for start in range(0, {LINES}, 1000):
        print("\\n".join(f"line {{n}} loss={{n / 7:.4f}}" for n in range(start, start + 1000)), flush=True)
    print("w" * {LONG_LINE} + EVIL, flush=True)
    raise RuntimeError(EVIL + "e" * 4000)
"""
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OUT_OF_REACH = """
() => {
  // What scrolls sideways in a box of its own is reached by scrolling there; all else must lie in the window.
  const scrolls = (one) => {
    for (let box = one.parentElement; box; box = box.parentElement)
      if (/auto|scroll/.test(getComputedStyle(box).overflowX)) return true;
    return false;
  };
  const drawn = { opacityProperty: true, visibilityProperty: true };
  const shown = (one) => one.checkVisibility(drawn) && one.getClientRects().length > 0;
  return [...document.querySelectorAll("button, a[href], input, select, textarea, [role=button]")]
    .filter((one) => shown(one) && !one.closest(".vh, .skip") && !scrolls(one))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([, at]) => at.width > 1 && (at.left < -1 || at.right > innerWidth + 1))
    .map(([one]) => one.outerHTML.slice(0, 160));
}
"""


@pytest.fixture(scope="module")
def hostile(shared_cluster):
    """Ids of a trial that reports and prints all that, and of an experiment of as many trials as can wait.

    The search asks for all its trials at once, and no agent can hold one: two requests make all of it.
    """
    cluster = shared_cluster
    loud = cluster.submit(
        REPORTS,
        name=NAME,
        description=NAME,
        labels=[EVIL, *(f"tag-{n}" for n in range(40))],
        hyperparameters={EVIL: NAME},
    )
    wide = cluster.submit(
        "pass",
        name=NAME,
        hyperparameters={f"{EVIL}{n}": {"type": "double", "minval": 0, "maxval": 1} for n in range(12)},
        searcher={
            "name": "random",
            "metric": "loss",
            "max_length": 1,
            "max_trials": TRIALS,
            "max_concurrent_trials": TRIALS,
        },
        resources={"slots_per_trial": 1000},
    )
    cluster.api("PATCH", f"experiments/{loud}", json={"notes": NAME})
    cluster.api(
        "POST", "models", json={"name": NAME[:200].replace("/", "|"), "description": NAME, "labels": [EVIL]}
    )
    space = cluster.api("POST", "workspaces", json={"name": EVIL[:60]})["workspace"]["id"]
    cluster.api("POST", f"workspaces/{space}/projects", json={"name": EVIL[:60], "description": NAME})
    cluster.wait_for_end(loud, within_s=300)
    trial = cluster.first_trial(loud)
    wait_for(lambda: cluster.get(f"trials/{trial}/logs/summary")["lines"] > LINES, 120, "all lines")
    wait_for(lambda: cluster.experiment(wide)["numTrials"] >= TRIALS, 120, "all trials")
    yield {"loud": loud, "trial": trial, "wide": wide, "space": space, "one": cluster.first_trial(wide)}
    cluster.api("POST", f"experiments/{wide}/kill")


PAGES = (
    "dashboard",
    "experiments?c=id,name,description,tags,state,progress,searcherMetricsVal,user&heat=1",
    "experiments?g=projectId",
    *(
        f"experiments/{{loud}}/{tab}"
        for tab in ("overview", "hyperparameters", "metrics", "checkpoints", "code")
    ),
    *(f"experiments/{{loud}}/{tab}" for tab in ("logs", "notes", "story", "profiler")),
    *(f"experiments/{{loud}}/trials/{{trial}}/{tab}" for tab in ("overview", "metrics", "logs", "story")),
    *(
        f"experiments/{{wide}}/{tab}"
        for tab in ("overview", "hyperparameters", "trials", "checkpoints", "logs")
    ),
    "experiments/{wide}/trials/{one}/overview",
    "experiments/compare?e={loud},{wide}",
    "experiments/compare?e={loud},{wide}&v=details",
    "experiments/new?from={loud}",
    "models",
    "workspaces",
    "workspaces/{space}",
    "jobs",
    "clusters",
    "tasks",
    "settings",
    "settings/tokens",
    "settings/users",
    "system/events",
    "system/events?view=health",
    "system/audit",
    "nothing/is/here",
)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_answers_stays_within_the_window_and_runs_nothing(shared_cluster, hostile, signed_in, path):
    page = signed_in(shared_cluster)
    received = []
    page.on("pageerror", lambda error: received.append(str(error)))
    page.on("dialog", lambda dialog: received.append(dialog.message))
    for width in SIZES:
        page.set_viewport_size({"width": width, "height": 900})
        show(page, f"/{path.format(**hostile)}")
        assert page.evaluate(BEYOND) <= 0, f"{path} is wider than {width} px"
        assert page.evaluate(OUT_OF_REACH) == [], f"{path} at {width} px"
        assert page.locator('img[src="x"]').count() == 0
        # A page that answers has a frame soon after it is asked.
        assert page.evaluate("new Promise(drawn => requestAnimationFrame(() => drawn(true)))")
    assert page.evaluate("window.hit") is None
    assert received == []


def test_the_log_of_400_000_lines_opens_at_its_failure(shared_cluster, hostile, signed_in):
    page = signed_in(shared_cluster)
    page.goto(f"/det/experiments/{hostile['loud']}/trials/{hostile['trial']}/logs")
    expect(page.locator(".log .line", has_text="RuntimeError: ")).to_be_in_viewport(timeout=60 * SECONDS)
    assert page.locator(".log .line").count() <= 200
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator(".log .line", has_text=re.compile("line 0 "))).to_be_in_viewport(timeout=60 * SECONDS)


def test_two_thousand_trials_are_scrolled_to_the_last(shared_cluster, hostile, signed_in):
    page = signed_in(shared_cluster)
    page.goto(f"/det/experiments/{hostile['wide']}/trials")
    rows = page.get_by_role("table", name="Trials").locator("tbody tr[data-id]")
    expect(rows.first).to_be_visible(timeout=60 * SECONDS)
    assert rows.count() < 200, "rows out of view are not there"
    expect(page.get_by_role("status").filter(has_text=f"{TRIALS:,} trials")).to_be_visible()
