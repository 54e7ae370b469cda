"""The site's own search answers what newcomers ask: the page that answers stands first, one click away."""

import functools
import http.server
import re
import threading

import pytest

from docs.site_builder import __main__ as site_builder
from tests.fixtures.browser import SECONDS
from tests.fixtures.browser import browser as browser
from tests.fixtures.chromium import CHROMIUM
from tests.fixtures.local_cluster import wait_for

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: make test installs it"),
]

QUESTIONS = "docs/how-to/questions.html#"
ASKED = {
    ("how do I resume", "resume", "how do I resume a run"): "how-do-i-resume-training-an-experiment-or-a-run",
    ("what does max_restarts count", "max_restarts"): "what-does-max_restarts-count",
    ("why is my job waiting", "job waiting"): "why-is-my-job-waiting",
    ("how do I add a searcher", "add searcher"): "how-do-i-add-a-searcher-search-method",
    ("which setting moves checkpoints to S3", "checkpoints S3"): "which-setting-moves-checkpoints-to-s3",
    ("how do I make a backup",): "how-do-i-make-and-restore-a-backup",
    ("how do I restore a backup",): "docs/guides/operating.html#backup-and-restore",
    ("how do I use my own image", "own image"): "how-do-i-use-my-own-image-or-a-private-image",
    ("how do I share a template", "share template"): "how-do-i-share-a-template",
    ("what happens when a worker dies", "worker dies"): "what-happens-when-a-worker-dies",
    ("how do I see GPU use", "gpu use", "GPU utilization"): "how-do-i-see-gpu-use",
    ("how do I use two GPUs", "several GPUs"): "how-do-i-use-several-gpus-two-or-more-for-one-trial",
    ("how do I see the logs of a failed trial",): "how-do-i-see-the-logs-of-a-failed-trial",
    ("how do I stop everything", "stop experiment"): "how-do-i-stop-an-experiment-a-trial-or-everything",
    ("where are my files",): "where-are-my-files",
    ("where are my checkpoints stored",): "where-are-my-checkpoints-stored",
    ("why did my trial fail",): "why-did-my-trial-end-stop-early-or-fail",
    ("why did my trial restart",): "why-did-my-trial-restart",
    ("CUDA not found no GPU",): "why-is-no-gpu-found",
    ("why was my task killed", "limit on memory"): (
        "why-was-my-task-killed-is-there-a-limit-on-memory-processes-or-disk"
    ),
    ("out of memory",): "what-do-i-do-when-a-trial-runs-out-of-memory",
    ("connection refused",): "why-does-det-not-reach-the-cluster-command-not-found-connection-refused",
    ("how do I use another port",): "how-do-i-use-another-port-or-a-cluster-elsewhere",
    ("how do I upgrade",): "how-do-i-upgrade",
    ("how do I download the best model",): "how-do-i-download-the-best-model",
    ("how do I set environment variables",): "how-do-i-set-environment-variables",
    ("how do I change the learning rate",): "how-do-i-change-a-setting-such-as-the-learning-rate-for-one-run",
    ("how do I debug my script", "test my script", "offline mode", "run without a cluster"): (
        "how-do-i-test-or-debug-my-script-without-a-cluster-offline-on-my-laptop"
    ),
    ("how do I make a run reproducible", "random seed"): "how-do-i-make-a-run-reproducible-random-seed",
    ("how do I train longer", "more epochs"): "how-do-i-train-longer-than-planned-more-epochs",
    ("how do I give my job a higher priority",): "how-do-i-give-my-job-a-higher-priority",
    ("why do I see no output",): "why-do-i-see-no-output-from-my-script",
    ("how do I train on several machines", "multi node training"): (
        "how-do-i-train-on-several-machines-multi-node-training"
    ),
    ("how do I run on a specific GPU",): "how-do-i-choose-a-specific-gpu-or-machine",
    ("why are my checkpoints deleted",): "why-are-my-checkpoints-deleted",
    ("how do I free disk space", "disk space"): "how-do-i-free-disk-space",
    ("how do I plot my own metric", "how do I report custom metrics"): (
        "how-do-i-report-and-plot-my-own-custom-metrics"
    ),
    ("how do I use weights and biases", "mlflow"): "how-do-i-use-weights-biases-mlflow-or-another-tracker",
    ("how do I profile training",): "how-do-i-profile-training",
    ("how do I install steadfast",): "how-do-i-install-steadfast",
    ("does it work on Windows", "which python version"): (
        "which-python-version-do-i-need-and-does-it-work-on-windows-or-macos"
    ),
    ("what is the default password",): "what-is-the-default-password-and-how-do-i-log-in",
    ("how do I give a colleague access", "add user"): "how-do-i-give-a-colleague-access-add-a-user",
    ("how do I see the web UI from my laptop over ssh",): (
        "how-do-i-see-the-web-ui-from-my-laptop-if-the-cluster-runs-on-a-remote-server"
    ),
    ("how do I move from Ray Tune",): "how-do-i-move-from-ray-tune-optuna-slurm-scripts-or-another-tool",
    (
        "what is max_length",
        "how long does a trial train",
    ): "what-is-max_length-and-how-long-does-a-trial-train",
    ("how do I cancel all jobs",): "how-do-i-stop-an-experiment-a-trial-or-everything",
    ("my job hangs",): "what-do-i-do-when-my-job-hangs-or-is-stuck",
    (
        "how do I continue after a power failure",
    ): "what-happens-after-a-power-failure-or-a-restart-of-the-machine",
    ("grid search",): "how-do-i-try-every-value-in-a-list-grid-search",
    ("how do I export a model", "how do I load a checkpoint for inference"): (
        "how-do-i-export-a-model-or-load-a-checkpoint-for-inference"
    ),
    ("how to get the experiment id in my script",): (
        "how-do-i-get-the-id-of-the-experiment-or-trial-in-my-script"
    ),
    ("how do I delete old logs",): "how-do-i-delete-old-logs",
    ("how do I copy my cluster to another machine",): "how-do-i-move-or-copy-my-cluster-to-another-machine",
    ("port 8080 in use",): "how-do-i-use-another-port-or-a-cluster-elsewhere",
    ("how do I change the batch size",): "how-do-i-change-a-setting-such-as-the-learning-rate-for-one-run",
    ("how do I uninstall",): "how-do-i-uninstall-steadfast",
    ("how do I fork an experiment",): "how-do-i-fork-or-copy-an-experiment",
    ("how do I start from another trial", "start from a checkpoint"): (
        "how-do-i-start-from-a-checkpoint-or-the-weights-of-another-trial-warm-start"
    ),
    ("how do I pin a GPU",): "how-do-i-choose-a-specific-gpu-or-machine",
    ("how do I install python packages for my trial",): "how-do-i-install-packages-for-my-script",
    ("how do I delete checkpoints", "how do I delete a checkpoint"): "how-do-i-delete-checkpoints",
    ("how do I find the best trial",): "how-do-i-find-the-best-trial",
    ("how do I log to tensorboard",): "how-do-i-log-to-tensorboard-and-open-it",
    ("how do I export metrics to csv",): "how-do-i-get-metrics-out-csv-python",
    ("how do I add a remote worker",): "how-do-i-add-a-worker-also-on-a-remote-machine",
    ("how do I reset the admin password",): "how-do-i-reset-a-forgotten-password-also-that-of-the-admin",
    ("how do I enable TLS https",): "how-do-i-turn-on-tls-https",
    ("how do I use the REST API",): "how-do-i-use-the-rest-api",
    ("slack notification",): "how-do-i-get-notified-when-an-experiment-ends",
    ("how do I register a model",): "how-do-i-register-a-model",
    ("how do I use mixed precision",): "how-do-i-use-mixed-precision-amp",
    ("data loading is slow",): "what-do-i-do-when-training-or-data-loading-is-slow",
    ("how do I monitor the cluster with prometheus",): (
        "how-do-i-monitor-the-cluster-with-prometheus-and-grafana"
    ),
    ("how do I set a time limit for a job",): "how-do-i-set-a-time-limit-for-a-job",
    ("how do I run a shell on the cluster",): "how-do-i-run-a-shell-on-the-cluster",
    ("how do I train on cpu only",): "how-do-i-train-on-cpus-only-without-a-gpu",
    ("how do I set a quota",): "how-do-i-set-a-quota",
    ("what happens when the disk is full",): "what-happens-when-the-disk-is-full",
    ("what is a slot",): "docs/glossary.html#what-is-a-slot",
    ("what is a trial",): "docs/glossary.html#what-is-a-trial",
    ("what is an experiment",): "docs/glossary.html#what-is-an-experiment",
    ("what is a resource pool",): "docs/glossary.html#what-is-a-resource-pool",
    ("what is a workspace", "what is a project"): (
        "docs/glossary.html#what-is-a-workspace-and-what-is-a-project"
    ),
    ("what is an allocation",): "docs/glossary.html#what-is-an-allocation",
    ("what is a rung",): "docs/glossary.html#what-is-a-rung",
    ("what is a searcher",): "docs/glossary.html#what-is-a-searcher",
    ("what is a worker",): "docs/glossary.html#what-is-a-worker",
    ("what is a checkpoint",): "docs/glossary.html#what-is-a-checkpoint",
    ("how do I sweep hyperparameters", "sweep"): "how-do-i-sweep-hyperparameters",
    ("compare two runs", "compare experiments"): "how-do-i-compare-experiments-runs-or-trials",
    ("log images",): "how-do-i-log-images-audio-or-text",
    ("how do I see metrics live",): "how-do-i-see-metrics-live",
    ("how do I use FSDP", "how do I use DDP"): "how-do-i-use-ddp-fsdp-or-horovod-data-parallel-training",
    ("gradient clipping",): "how-do-i-clip-gradients",
    ("gradient accumulation",): "how-do-i-use-gradient-accumulation",
    ("learning rate schedule",): "how-do-i-use-a-learning-rate-schedule",
    ("fractional GPU",): "can-several-trials-share-one-gpu-fractional-gpus",
    ("how do I tag an experiment", "how do I rename an experiment"): (
        "how-do-i-rename-tag-or-label-an-experiment"
    ),
    ("how do I move an experiment to another project",): (
        "how-do-i-move-an-experiment-to-another-project-or-workspace"
    ),
    ("how do I archive an experiment",): "how-do-i-archive-an-experiment",
    ("how do I see the config of an experiment",): ("how-do-i-see-the-configuration-config-of-an-experiment"),
    ("checkpoint garbage collection",): "how-does-checkpoint-garbage-collection-work",
    ("context directory too large",): "what-do-i-do-when-the-context-directory-is-too-large",
    ("ModuleNotFoundError",): "why-does-my-script-fail-with-modulenotfounderror-or-an-import-error",
    ("401 unauthorized", "permission denied"): (
        "why-does-det-say-401-unauthorized-403-forbidden-or-permission-denied"
    ),
    ("NCCL error",): "what-do-i-do-about-an-nccl-error",
    ("port forwarding",): "how-do-i-reach-a-port-of-a-task-port-forwarding",
    ("spot instances",): "does-preemption-work-with-spot-instances",
    ("drain a node", "how do I remove a worker"): (
        "how-do-i-remove-a-worker-or-drain-a-node-for-maintenance"
    ),
    ("how do I set up single sign-on",): "how-do-i-set-up-single-sign-on-sso-oidc",
    ("audit log",): "who-did-what-audit-log",
    ("how do I see who used how many GPU hours", "usage report"): (
        "how-do-i-see-who-used-how-many-gpu-hours-usage-report"
    ),
    ("how do I limit what a user can do",): "how-do-i-limit-what-a-user-can-do-or-see-roles",
    ("read-only user",): "how-do-i-make-a-read-only-user",
    ("how do I rotate keys", "rotate keys"): "how-do-i-rotate-or-replace-keys",
    ("where is the master log",): "where-is-the-log-of-the-master",
    ("why is the cluster slow",): "why-is-the-cluster-slow-or-the-web-ui",
    ("how do I change the database to PostgreSQL",): "how-do-i-use-postgresql-as-the-database",
    ("high availability",): "how-do-i-set-up-high-availability",
    ("limit parallel trials", "how do I change the number of trials running at once"): (
        "how-do-i-limit-the-number-of-trials-or-how-many-run-at-once-in-parallel"
    ),
    ("how do I use early stopping",): "how-does-early-stopping-work",
    ("can I edit the config of a running experiment",): "can-i-edit-a-running-experiment-its-configuration",
    (
        "how do I add more trials to a finished experiment",
    ): "how-do-i-add-more-trials-to-a-finished-experiment",
    ("how do I read a dataset from S3",): "how-do-i-load-data-or-share-a-dataset",
    ("how do I mount a folder",): "how-do-i-mount-a-folder-into-a-trial",
    ("notebook stops when idle",): "how-do-i-start-a-notebook",
    ("how do I exclude files from upload", "detignore"): "how-do-i-exclude-files-from-the-upload-detignore",
    ("how do I continue training with a different learning rate",): (
        "how-do-i-continue-training-with-a-different-learning-rate"
    ),
    ("what happens if I close my laptop", "does my job continue when I log out"): (
        "what-happens-if-i-close-my-laptop-or-log-out"
    ),
    ("nested hyperparameters",): "how-do-i-use-nested-hyperparameters",
    ("how do I exclude a hyperparameter combination", "how do I use a conditional search space"): (
        "how-do-i-exclude-a-combination-of-hyperparameters-or-use-a-conditional-search-space"
    ),
    ("how do I share results with a colleague",): "how-do-i-share-results-with-a-colleague",
    (
        "what does the state ACTIVE mean",
    ): "what-do-the-states-active-paused-completed-canceled-and-error-mean",
    ("what does preemption mean",): "what-does-preemption-mean",
    ("how do I keep only the best checkpoint",): "how-do-i-keep-more-fewer-or-only-the-best-checkpoints",
    ("how do I validate more often",): "how-do-i-validate-more-often",
    ("what is the difference between epochs batches and records",): (
        "what-is-max_length-and-how-long-does-a-trial-train"
    ),
    ("what is searcher metric",): "docs/reference/configuration.html#searcher",
    ("minimize or maximize metric",): "is-the-searcher-metric-minimized-or-maximized-minimize-maximize",
    ("loss is nan",): "what-happens-when-my-loss-is-nan",
    ("how do I see stdout of rank 1",): "how-do-i-see-the-logs-of-a-failed-trial",
    ("can I use conda", "can I use uv or poetry"): "how-do-i-install-packages-for-my-script",
    ("how do I run without root",): "do-i-need-root-or-docker",
    ("how do I see all running jobs", "who is using the gpu"): (
        "how-do-i-see-all-running-jobs-and-who-is-using-the-gpus"
    ),
    ("how do I make a trial restart automatically", "how do I turn off restarts"): (
        "what-does-max_restarts-count"
    ),
    ("what is an entrypoint",): "what-is-an-entrypoint",
    ("how do I pass command line arguments",): "how-do-i-pass-command-line-arguments-to-my-script",
    ("which git commit ran",): "which-version-of-my-code-ran-git-commit",
    ("how do I submit from a CI pipeline",): "how-do-i-submit-from-a-ci-pipeline",
    ("how do I submit an experiment from python",): "how-do-i-submit-an-experiment-from-python",
    ("how much memory does it need",): "how-much-memory-and-disk-does-it-need",
    ("how do I use huggingface",): (
        "how-do-i-use-my-framework-pytorch-keras-lightning-hugging-face-transformers-deepspeed-scikit-learn"
    ),
    ("AMD GPU", "how do I use a GPU from another vendor AMD"): (
        "which-gpus-are-supported-nvidia-amd-from-another-vendor"
    ),
    ("is there a license", "telemetry"): "which-license-does-it-have-and-does-it-send-telemetry",
    ("how do I pass an API key to my script",): "how-do-i-pass-secrets-such-as-an-api-key-to-my-script",
    ("migrate from determined",): "docs/tutorials/from-determined.html#",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    assert site_builder.build(folder) == 0
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder / "site"))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def search(site, browser):
    """Types into the search of the first page; returns what it offers, best first.

    What it offered before stays for a moment, already with the new words in its addresses.
    """
    page = browser.new_page()
    page.goto(f"{site}/docs/index.html", wait_until="networkidle")
    field = page.get_by_role("combobox")

    def opened():
        # On a busy machine the page is loaded before its script listens to keys.
        if not field.is_visible():
            page.keyboard.press("/")
        return field.is_visible()

    wait_for(opened, 60, "the search to open")

    def ask(words):
        field.fill(words)
        return page.get_by_role("option")

    yield ask
    page.close()


@pytest.mark.parametrize(
    ("words", "answer"), [(words, answer) for phrasings, answer in ASKED.items() for words in phrasings]
)
def test_a_question_is_answered_in_one_click(search, words, answer):
    page, _, anchor = (answer if "#" in answer else f"{QUESTIONS}{answer}").partition("#")
    part = f"#{re.escape(anchor)}" if anchor else ""
    address = re.compile(f"{re.escape(page)}[^#]*{part}$")
    expect(search(words).first).to_have_attribute("href", address, timeout=60 * SECONDS)


def test_the_list_of_changes_does_not_hide_what_explains_them(search):
    offered = search("checkpoints")
    expect(offered.filter(has_text=re.compile("checkpoints", re.IGNORECASE)).first).to_be_visible(
        timeout=60 * SECONDS
    )
    assert not any("/CHANGELOG" in link.get_attribute("href") for link in offered.all())
