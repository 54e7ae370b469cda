"""How the client of Google Cloud Storage and Azure (obstore) is addressed by a checkpoint storage."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

OBJECT_STORES = ("gcs", "azure")
"""Values of `checkpoint_storage.type` that this module is about."""
AZURE_DOMAINS = (
    "blob.core.windows.net",
    "blob.core.usgovcloudapi.net",
    "blob.core.chinacloudapi.cn",
    "blob.storage.azure.net",
)
"""Domains whose names only Azure gives out, to accounts."""
STAND_IN_TOKEN = "stand-in"  # noqa: S105
_QUERY = re.compile(r"\?[^\s\"')]+")
_PARTS = re.compile(r"<(?:Code|Message)>([^<]*?)(?: RequestId:[^<]*)?<")
_CAUSES = re.compile(r"\b(?:kind: |\w+\(\s+)([A-Z]\w+),")
"""What the client was told by its libraries, outermost first."""
_SIGNATURE = re.compile(r"(^|[?&])sig=")
_ACCOUNT_NAME = re.compile(r"[a-z0-9-]{3,}")


class AzureAccount(msgspec.Struct, frozen=True):
    """An account of Azure Blob Storage, and what it is opened with."""

    url: str
    """Address, `https://host[:port][/path]`, without a slash at the end."""
    name: str
    credential: str
    """An account key, or a shared access signature (SAS); empty: what the environment has."""

    def is_azure(self) -> bool:
        """Whether the address can only be Azure's own, with TLS."""
        url = urlsplit(self.url)
        # Without TLS, a host in between could take the credentials.
        return url.scheme == "https" and (url.hostname or "").endswith(tuple(f".{d}" for d in AZURE_DOMAINS))

    def signed_with(self) -> dict[str, Any]:
        """The credential as obstore wants it from a provider, which it asks once."""
        if _SIGNATURE.search(self.credential):
            return {"sas_token": self.credential.lstrip("?"), "expires_at": None}
        return {"access_key": self.credential, "expires_at": None}


def azure_account(storage: Mapping[str, Any]) -> AzureAccount:
    """Return the account of a storage of type azure. Raises ValueError that names the field."""
    if text := storage.get("connection_string"):
        return _of_connection_string(text)
    return _account("account_url", storage.get("account_url") or "", "", storage.get("credential") or "")


def _of_connection_string(text: str) -> AzureAccount:
    pairs = (part.partition("=") for part in text.split(";"))
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    name, suffix = fields.get("accountname", ""), fields.get("endpointsuffix") or "core.windows.net"
    scheme = fields.get("defaultendpointsprotocol") or "https"
    url = fields.get("blobendpoint") or (f"{scheme}://{name}.blob.{suffix}" if name else "")
    credential = fields.get("accountkey") or fields.get("sharedaccesssignature") or ""
    if not url or not credential:
        raise ValueError(
            "checkpoint_storage.connection_string needs AccountName or BlobEndpoint, and AccountKey or "
            "SharedAccessSignature: copy it whole from the access keys of the account"
        )
    return _account("connection_string", url, name, credential)


def _account(field: str, address: str, name: str, credential: str) -> AzureAccount:
    url = _checked(field, address)
    account = AzureAccount(address.rstrip("/"), name or _name_in(url), credential)
    # Otherwise a user's configuration could have the platform send its own credentials to the user's server.
    if not credential and not account.is_azure():
        raise ValueError(
            f"checkpoint_storage.{field}: {url.netloc} is no address of Azure, so it gets no credentials "
            "from the environment: name a credential"
        )
    return account


def _checked(field: str, address: str) -> SplitResult:
    url = urlsplit(address)
    if url.query or url.fragment or "@" in url.netloc:
        # It is shown, logged and compared, so it must not hold a secret.
        raise ValueError(
            f"checkpoint_storage.{field} holds more than an address: give a shared access signature as "
            "credential"
        )
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError(
            f"checkpoint_storage.{field} must give an address like https://<account>.blob.core.windows.net, "
            f"not {address!r}"
        )
    return url


def _name_in(url: SplitResult) -> str:
    """The account's name: the first label of the host, or of the path if the host has many accounts."""
    name = url.path.strip("/").partition("/")[0] or (url.hostname or "").partition(".")[0]
    if not _ACCOUNT_NAME.fullmatch(name):
        raise ValueError(f"checkpoint_storage.account_url {url.geturl()!r} does not name an account")
    return name


def store_arguments(storage: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments for obstore's `GCSStore` or `AzureStore`. Raises ValueError.

    `environment` may hold STORAGE_EMULATOR_HOST, the address of a stand-in for Google's store.
    """
    if storage["type"] == "gcs":
        arguments: dict[str, Any] = {"bucket": storage["bucket"]}
        if stand_in := environment.get("STORAGE_EMULATOR_HOST"):
            url = stand_in if "://" in stand_in else f"http://{stand_in}"
            # It gets nobody's credentials.
            arguments |= {"base_url": url.rstrip("/"), "credential_provider": _stand_in_token}
        return arguments
    account = azure_account(storage)
    arguments = {
        "container_name": storage["container"],
        "account_name": account.name,
        "endpoint": account.url,
    }
    # Variables of the environment must not redirect what the configuration says.
    arguments |= {"use_emulator": False, "use_fabric_endpoint": False}
    if account.credential:
        # A provider is used instead of whatever keys the environment holds.
        arguments["credential_provider"] = account.signed_with
    return arguments


def _stand_in_token() -> dict[str, Any]:
    return {"token": STAND_IN_TOKEN, "expires_at": None}


def error_text(error: Exception) -> str:
    """The first paragraph of an error of obstore. Of the store's own answer only code and message."""
    first, _, inner = str(error).partition("\n\n")
    text = " ".join(first.split())
    # The client hides whether a name was not found, a connection refused or a certificate bad; only the chain
    # of causes says it.
    if text.endswith("error sending request") and (causes := _CAUSES.findall(inner)):
        text = f"{text}: {causes[-1]}"
    parts = [html.unescape(part) for part in _PARTS.findall(text)]
    head = text.partition("<")[0].rstrip(": ")
    # A query may hold a signature.
    return _QUERY.sub("", ": ".join([head, *parts] if parts else [text]))
