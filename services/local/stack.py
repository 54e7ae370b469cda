"""Prepares a container stack before it starts: keys, credentials, the broker's configuration, a bucket.

    python -m services.local.stack --keys /keys --store /data --listen 0.0.0.0:4222 --bucket steadfast

With `--brokers nats-1,nats-2,nats-3`, the brokers' host names, each gets its own configuration,
`broker/nats-1.conf` and so on. They reach each other at port 6222.

Existing keys are kept; files derived from them are written again. `--worker ID`, which may be repeated, also
writes `workers/ID.creds`, which are valid for that worker only.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from det_contracts import ids
from services.kit import broker
from services.kit.blobs import s3_client
from services.kit.files import write_atomic
from services.local.keys import KeysDamaged, ensure_secret, write_keys, write_worker

MONITOR_PORT = 8222
ROUTE_PORT = 6222


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare the stack. The S3 address and keys come from `STEADFAST_S3_*`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=Path, help="folder with one folder per kind of process")
    parser.add_argument("--store", type=Path, help="where the broker keeps the log")
    parser.add_argument("--listen", help="address and port of the broker")
    parser.add_argument("--monitor-port", type=int, default=MONITOR_PORT)
    parser.add_argument("--brokers", help="host names of a replicated broker's members, with commas")
    parser.add_argument("--route-port", type=int, default=ROUTE_PORT, help="port for traffic between brokers")
    for part, what in (("cert", "certificate"), ("key", "its key"), ("ca", "authority of other brokers")):
        parser.add_argument(f"--tls-{part}", type=Path, help=f"PEM file of the broker, as it sees it: {what}")
    parser.add_argument("--worker", action="append", default=[], help="worker id to write credentials for")
    parser.add_argument("--bucket", help="bucket to create in the S3 store")
    args = parser.parse_args(arguments)
    if not args.bucket and not (args.keys and args.store and args.listen):
        parser.error("--keys, --store and --listen belong together; without them, give --bucket")
    try:
        if args.keys:
            _write_files(args)
    except KeysDamaged as error:
        sys.exit(str(error))
    if args.bucket:
        _make_bucket(args.bucket)


def _write_files(args: argparse.Namespace) -> None:
    authority = write_keys(args.keys, services=args.keys / "services", workers=args.keys / "worker")
    for name in ("token-key", "task-key"):
        ensure_secret(args.keys / "services" / name)
    sealing = ensure_secret(args.keys / "services" / "sealing-key")
    write_atomic(args.keys / "worker" / "sealing-key", sealing.read_bytes())
    for worker_id in args.worker:
        if not ids.is_token(worker_id):
            sys.exit(f"--worker {worker_id}: {ids.WORKER_ID_RULE}")
        write_worker(authority, args.keys / "workers" / f"{worker_id}.creds", worker_id)
    folder = args.keys / "broker"
    folder.mkdir(exist_ok=True)
    host, _, port = args.listen.rpartition(":")
    for file, member in _members(args, host):
        broker.write_config(
            folder,
            port=int(port),
            monitor_port=args.monitor_port,
            authority=authority,
            host=host,
            store=args.store,
            member=member,
            tls=_tls(args),
            file=file,
        )


def _tls(args: argparse.Namespace) -> broker.Tls | None:
    parts = [part for part in (args.tls_cert, args.tls_key, args.tls_ca) if part is not None]
    if len(parts) not in (0, 3):
        sys.exit("--tls-cert, --tls-key and --tls-ca belong together: give all three, or none")
    return broker.Tls(*parts) if parts else None


def _members(args: argparse.Namespace, host: str) -> Iterator[tuple[str, broker.Member | None]]:
    """Yield each broker's file, with its place in the cluster."""
    if not args.brokers:
        yield "nats-server.conf", None
        return
    names = args.brokers.split(",")
    peers = [f"{name}:{args.route_port}" for name in names]
    for name in names:
        yield f"{name}.conf", broker.Member(name, f"{host}:{args.route_port}", peers)


def _make_bucket(name: str) -> None:
    client = s3_client(
        os.environ.get("STEADFAST_S3_ENDPOINT_URL"),
        os.environ.get("STEADFAST_S3_ACCESS_KEY"),
        os.environ.get("STEADFAST_S3_SECRET_KEY"),
    )
    if not client.bucket_exists(name):
        client.make_bucket(name)


if __name__ == "__main__":
    main()
