"""Where checkpoints are kept and how many (experiment configuration spec, section 2.4)."""

from __future__ import annotations

import posixpath
from typing import Any

from det_contracts.expconf.containers import Field, Record, Union, rule
from det_contracts.expconf.scalars import Shape, Text, Unfit, Whole

UNKNOWN = """is not an object where object["type"] is one of 'shared_fs', 's3', 'gcs' or 'azure'"""
OUTSIDE = "storage_path must either be a relative directory or a subdirectory of host_path"

RETENTION = {
    "save_experiment_best": Field(Whole(0), 0),
    "save_trial_best": Field(Whole(0), 1),
    "save_trial_latest": Field(Whole(0), 1),
}


def clean_prefix(value: Any) -> Any:
    """A prefix in a bucket without empty and dot parts; raises `Unfit` when it would climb out."""
    if not isinstance(value, str):
        return value
    parts = value.split("/")
    if ".." in parts:
        raise Unfit("prefix cannot contain /../")
    kept = "/".join(part for part in parts if part not in ("", "."))
    return "/" + kept if value.startswith("/") else kept


def within(host_path: str, storage_path: str) -> bool:
    """Whether a path, absolute or relative to `host_path`, lies in it."""
    host = posixpath.normpath(host_path)
    return posixpath.commonpath([host, posixpath.normpath(posixpath.join(host, storage_path))]) == host


def _storage_path_fits(storage: dict[str, Any]) -> bool:
    host, path = storage.get("host_path"), storage.get("storage_path")
    return host is None or path is None or within(host, path)


class Azure(Record, frozen=True):
    """The account's credentials are one thing: they are merged from one side only."""

    def merge(self, high: Any, low: Any) -> Any:
        account = ("connection_string", "account_url")
        loser = low if any(high.get(key) is not None for key in account) else high
        if loser is low or any(low.get(key) is not None for key in account):
            dropped = {key: None for key in (*account, "credential") if key in loser}
            high, low = (high, low | dropped) if loser is low else (high | dropped, low)
        return super().merge(high, low)


TEXT = Field(Text())
BUCKET = {"bucket": Field(Text(), needed="finally"), "prefix": Field(Shape(clean_prefix, Text()))}

TYPES = {
    "s3": Record({**BUCKET, "access_key": TEXT, "secret_key": TEXT, "endpoint_url": TEXT}),
    "gcs": Record(BUCKET),
    "shared_fs": Record(
        {
            "host_path": Field(Text(posixpath.isabs, "host_path must be an absolute path"), needed="finally"),
            "storage_path": TEXT,
            "propagation": Field(Text(), "rprivate"),
            "container_path": TEXT,
            "checkpoint_path": TEXT,
            "tensorboard_path": TEXT,
        },
        (rule(OUTSIDE, _storage_path_fits),),
    ),
    "directory": Record(
        {
            "container_path": Field(
                Text(posixpath.isabs, "container_path must be an absolute path"), needed="finally"
            )
        }
    ),
    "azure": Azure(
        {
            "container": Field(Text(), needed="finally"),
            "connection_string": TEXT,
            "account_url": TEXT,
            "credential": TEXT,
        },
        (
            rule(
                "Exactly one of connection_string or account_url must be set",
                lambda azure: (azure.get("connection_string") is None) != (azure.get("account_url") is None),
                final=True,
            ),
            rule(
                "credential and connection_string must not both be set",
                lambda azure: azure.get("credential") is None or azure.get("connection_string") is None,
            ),
        ),
    ),
}

CHECKPOINT_STORAGE = Union("type", RETENTION, TYPES, UNKNOWN)
TENSORBOARD_STORAGE = Union(
    "type", RETENTION, {name: TYPES[name] for name in ("s3", "gcs", "shared_fs")}, UNKNOWN
)
