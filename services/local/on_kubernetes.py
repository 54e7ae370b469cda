"""A cluster on Kubernetes, from its Helm chart: `python -m services.local.on_kubernetes VERB`.

Helm and kubectl do the work. They cannot create the cluster's keys, which are kept in a folder of the
administrator and as Secrets in the cluster. `render` needs no API server.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from services.kit.merge_patch import merged
from services.local import stack

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "steadfast"
LISTEN, STORE = "0.0.0.0:4222", "/data"
SECRETS = {"broker": "broker-keys", "services": "service-keys", "worker": "worker-keys"}
"""Folder of the keys -> name suffix of the Secret with its files, as used by the chart."""
PLATFORM_LABELS = {"app.kubernetes.io/part-of": "steadfast"}


class CannotDeploy(Exception):
    """The deployment failed. The text says why and what to do."""


def main() -> int:
    """Run the requested verb and return the exit status."""
    args = _parser().parse_args()
    try:
        return int(VERBS[args.verb](args))
    except CannotDeploy as error:
        print(error, file=sys.stderr)
        return 1


def keys(args: argparse.Namespace) -> int:
    """Print the Secrets with the cluster's keys, creating the keys in the folder if necessary."""
    print(_to_yaml(_secrets(args)), end="")
    return 0


def render(args: argparse.Namespace) -> int:
    """Print what Helm would send to the API server."""
    if shutil.which("helm"):
        return _run(
            ["helm", "template", args.name, args.chart, f"--namespace={args.namespace}", *_values(args)]
        )
    try:
        # Helm's own engine as a library, with the same output.
        import helm_python
    except ImportError:
        raise CannotDeploy("helm is not on PATH: install it, or pip install helm-python-sdk") from None
    values: dict[str, Any] = {}
    for file in args.values:
        values = merged(values, yaml.safe_load(Path(file).read_text()) or {})
    with helm_python.Chart.load(args.chart) as chart:
        try:
            files = chart.render(values, name=args.name, namespace=args.namespace)
        except helm_python.HelmError as error:
            raise CannotDeploy(str(error)) from None
    for path, text in sorted(files.items()):
        if path.endswith(".yaml") and text.strip():
            print(f"---\n# Source: {path}\n{text.strip()}")
    return 0


def up(args: argparse.Namespace) -> int:
    """Create keys and namespaces, then install or upgrade the release."""
    _require_programs("helm", "kubectl")
    names = dict.fromkeys((args.namespace, args.workers_namespace or args.namespace))
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    text = _to_yaml([*namespaces, *_secrets(args)])
    status = _run(["kubectl", "apply", "--server-side", "--filename=-"], text)
    if status:
        return status
    command = ["helm", "upgrade", "--install", args.name, args.chart, f"--namespace={args.namespace}"]
    return _run([*command, *_values(args), *(["--wait"] if args.wait else [])])


def down(args: argparse.Namespace) -> int:
    """Remove the release and the workers it started.

    Keys and volumes stay unless `--delete-data` is given.
    """
    _require_programs("helm", "kubectl")
    status = _run(["helm", "uninstall", args.name, f"--namespace={args.namespace}", "--ignore-not-found"])
    delete = ["kubectl", "delete", "--ignore-not-found"]
    workers = f"app.kubernetes.io/part-of={args.name},steadfast/part=worker"
    namespace = f"--namespace={args.workers_namespace or args.namespace}"
    status = _run([*delete, namespace, "pods", f"--selector={workers}"]) or status
    if args.delete_data:
        here = f"--namespace={args.namespace}"
        volumes = f"--selector=app.kubernetes.io/instance={args.name}"
        status = _run([*delete, here, "persistentvolumeclaims", volumes]) or status
        status = _run([*delete, here, "secrets", *_secret_names(args.name).values()]) or status
    return status


def show(args: argparse.Namespace) -> int:
    """Show the running parts of the release and its workers."""
    _require_programs("kubectl")
    get = ["kubectl", "get", "--output=wide"]
    here = [f"--namespace={args.namespace}", f"--selector=app.kubernetes.io/instance={args.name}"]
    workers = f"--selector=app.kubernetes.io/part-of={args.name},steadfast/part=worker"
    namespace = f"--namespace={args.workers_namespace or args.namespace}"
    status = _run([*get, *here, "deployments,statefulsets,pods,persistentvolumeclaims"])
    return _run([*get, namespace, workers, "pods"]) or status


VERBS = {"keys": keys, "render": render, "up": up, "down": down, "status": show}


def _secrets(args: argparse.Namespace) -> list[dict[str, Any]]:
    folder = Path(args.keys)
    arguments = [f"--keys={folder}", f"--store={STORE}", f"--listen={LISTEN}"]
    if args.brokers > 1:
        arguments.append(f"--brokers={','.join(broker_names(args.name, args.brokers))}")
    stack.main(arguments)
    documents = []
    for part, name in _secret_names(args.name).items():
        namespace = (args.workers_namespace if part == "worker" else "") or args.namespace
        documents.append(_secret(name, namespace, folder / part))
    return documents


def broker_names(name: str, count: int) -> list[str]:
    """Return the host names of a release's brokers: StatefulSet pods behind a headless Service."""
    return [f"{name}-nats-{number}.{name}-nats" for number in range(count)]


def _secret_names(name: str) -> dict[str, str]:
    return {part: f"{name}-{ending}" for part, ending in SECRETS.items()}


def _secret(name: str, namespace: str, folder: Path) -> dict[str, Any]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": PLATFORM_LABELS},
        "type": "Opaque",
        "data": {path.name: base64.b64encode(path.read_bytes()).decode() for path in files},
    }


def _to_yaml(objects: Sequence[dict[str, Any]]) -> str:
    # JSON is valid YAML, and leaves no doubt about which values are strings.
    return "".join(f"---\n{json.dumps(document, indent=1)}\n" for document in objects)


def _values(args: argparse.Namespace) -> Iterator[str]:
    yield from (f"--values={file}" for file in args.values)


def _require_programs(*programs: str) -> None:
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise CannotDeploy(f"{' and '.join(missing)} not on PATH: install it, or apply what `render` prints")


def _run(command: Sequence[str], text: str | None = None) -> int:
    return subprocess.run(command, input=text, text=True, check=False).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.local.on_kubernetes", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in VERBS:
        sub = verbs.add_parser(verb)
        sub.add_argument("--name", default="steadfast", help="name of the release")
        sub.add_argument("--namespace", default="steadfast")
        sub.add_argument("--workers-namespace", default="", help="same as workers.namespace in the values")
        if verb in ("keys", "up"):
            sub.add_argument("--keys", required=True, help="folder that keeps the cluster's keys")
            sub.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="equal to broker.count")
        if verb in ("render", "up"):
            sub.add_argument("--values", action="append", default=[], help="values file; the last ones win")
            sub.add_argument("--chart", default=str(CHART), help="folder, archive or address of the chart")
        if verb == "up":
            sub.add_argument("--wait", action="store_true", help="wait until everything is ready")
        if verb == "down":
            sub.add_argument("--delete-data", action="store_true", help="also remove volumes and keys")
    return parser


if __name__ == "__main__":
    sys.exit(main())
