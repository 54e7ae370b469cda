"""`make demo`: starts a cluster, runs the search, shows the best trial, all through the `det` command."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
DET = [sys.executable, "-P", "-m", "determined.cli"]


def det(*words: str, capture: bool = False) -> str:
    """Run a `det` command in this folder; exits if it fails."""
    print("$ det", *words, flush=True)
    done = subprocess.run(
        [*DET, *words], cwd=HERE, text=True, stdout=subprocess.PIPE if capture else None, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def best_trial(address: str, experiment: int) -> dict:
    """The trial with the best validation accuracy."""
    login = json.dumps({"username": "determined", "password": "", "isHashed": True}).encode()
    json_body = {"Content-Type": "application/json"}
    signing_in = urllib.request.Request(f"{address}/api/v1/auth/login", login, json_body)
    with urllib.request.urlopen(signing_in) as answer:
        token = json.load(answer)["token"]
    path = f"/api/v1/experiments/{experiment}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&limit=1"
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["trials"][0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="determined", help="name of the cluster")
    parser.add_argument("--port", default="8080", help="port of the gateway")
    parser.add_argument("--slots", default="2", help="CPU slots to offer")
    args = parser.parse_args()
    address = f"http://127.0.0.1:{args.port}"
    os.environ["DET_MASTER"] = address
    cluster = ["--cluster-name", args.name, "--master-port", args.port]
    det("deploy", "local", "cluster-up", *cluster, "--no-gpu", "--slots", args.slots)
    submitted = time.monotonic()
    created = det("e", "create", "adaptive.yaml", ".", capture=True)
    print(created, end="")
    experiment = re.search(r"Created experiment (\d+)", created)[1]
    det("e", "logs", experiment, "-f")
    det("e", "wait", experiment, "--polling-interval", "0.5")
    searched_s = time.monotonic() - submitted
    det("e", "lt", experiment)
    best = best_trial(address, int(experiment))
    accuracy = best["bestValidation"]["metrics"]["avgMetrics"]["validation_accuracy"]
    print(
        f"\nbest trial: {best['id']}, validation accuracy {accuracy:.4f}, hyperparameters {best['hparams']}"
    )
    print(f"the search took {searched_s:.1f} s from its submission")
    print(f"web address: {address}/det/")
    print("stop the cluster with: make down")


if __name__ == "__main__":
    main()
