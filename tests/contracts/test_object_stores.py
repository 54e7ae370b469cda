"""Where a storage of type azure is, and what it is opened with."""

import pytest

from det_contracts.object_stores import azure_account, store_arguments

KEY = "a2V5c2lnPQ=="
LOCAL = "http://127.0.0.1:10000"
HOST = "https://name.blob.core.windows.net"


@pytest.mark.parametrize(
    ("storage", "url", "name", "credential"),
    [
        ({"account_url": f"{HOST}/"}, HOST, "name", ""),
        ({"account_url": HOST, "credential": KEY}, HOST, "name", KEY),
        ({"account_url": f"{LOCAL}/name", "credential": KEY}, f"{LOCAL}/name", "name", KEY),
        ({"connection_string": f"AccountName=name;AccountKey={KEY}"}, HOST, "name", KEY),
        (
            {"connection_string": f"accountname=name; AccountKey={KEY};EndpointSuffix=core.chinacloudapi.cn"},
            "https://name.blob.core.chinacloudapi.cn", "name", KEY,
        ),
        (
            {"connection_string": "BlobEndpoint=https://h.example/name;SharedAccessSignature=sv=1&sig=x%3D"},
            "https://h.example/name", "name", "sv=1&sig=x%3D",
        ),
    ],
)  # fmt: skip
def test_accounts(storage, url, name, credential):
    account = azure_account(storage)
    assert (account.url, account.name, account.credential) == (url, name, credential)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"account_url": "name.blob.core.windows.net"}, "must give an address like https://<account>"),
        ({"account_url": f"{HOST}?sv=1&sig=SECRET"}, "give a shared access signature as credential"),
        ({"account_url": "https://user:SECRET@name.blob.core.windows.net"}, "holds more than an address"),
        ({"account_url": "https://name.evil.example"}, "is no address of Azure, so it gets no credentials"),
        ({"account_url": "https://blob.core.windows.net.evil.example"}, "is no address of Azure"),
        ({"account_url": "http://name.blob.core.windows.net"}, "is no address of Azure"),
        ({"account_url": "https://evil-blob.core.windows.net"}, "is no address of Azure"),
        ({"connection_string": "AccountName=name"}, "needs AccountName or BlobEndpoint, and AccountKey"),
        ({"connection_string": "SECRET"}, "copy it whole"),
    ],
)
def test_what_is_no_account(storage, expected):
    with pytest.raises(ValueError, match=expected) as refused:
        azure_account(storage)
    assert "SECRET" not in str(refused.value)


def test_a_credential_is_a_key_or_a_signature():
    for credential, kind in (("?sv=1&sig=x", "sas_token"), ("sig=x&sv=1", "sas_token"), (KEY, "access_key")):
        assert list(azure_account({"account_url": HOST, "credential": credential}).signed_with()) == [
            kind,
            "expires_at",
        ]


def test_google_is_asked_unless_a_stand_in_is_named():
    storage = {"type": "gcs", "bucket": "b", "prefix": "p"}
    assert store_arguments(storage, {"GOOGLE_APPLICATION_CREDENTIALS": "/x"}) == {"bucket": "b"}
    arguments = store_arguments(storage, {"STORAGE_EMULATOR_HOST": "localhost:9000/"})
    assert arguments["base_url"] == "http://localhost:9000"
    assert arguments["credential_provider"]()["token"] == "stand-in"
