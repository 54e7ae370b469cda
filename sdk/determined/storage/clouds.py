"""Checkpoints in Google Cloud Storage and in Azure Blob Storage."""

from collections.abc import Iterable

from det_contracts.object_stores import azure_account
from determined.storage.bucket import Bucket
from determined.storage.bucket_storage import BucketStorageManager
from determined.storage.listing import Resources


class GCSStorageManager(BucketStorageManager):
    """Stores the files of a checkpoint as objects `[prefix/]<storage id>/<relative path>`.

    The credentials are the application default credentials: GOOGLE_APPLICATION_CREDENTIALS, those of
    `gcloud auth application-default login`, or the machine's service account.
    """

    TYPE = "gcs"
    ADVICE = "check the bucket and the application default credentials"

    def __init__(self, bucket: str, prefix: str | None = None, temp_dir: str | None = None) -> None:
        if not bucket:
            raise ValueError("a GCS storage needs the name of a bucket")
        super().__init__(prefix, temp_dir)
        self._bucket = bucket

    def __repr__(self) -> str:
        return f"gs://{self._bucket}/{self._prefix}"

    def delete(self, storage_id: str, globs: Iterable[str]) -> Resources:
        return super().delete(storage_id, globs)

    def _connect(self) -> Bucket:
        return _object_store({"type": self.TYPE, "bucket": self._bucket})


class AzureStorageManager(BucketStorageManager):
    """Stores the files of a checkpoint as blobs `<storage id>/<relative path>`.

    `credential` is an account key or a shared access signature. Without it, and without a connection string,
    the usual AZURE_* environment variables and the machine's managed identity are used.
    """

    TYPE = "azure"
    ADVICE = "check the container, the account and the credential"

    def __init__(
        self,
        container: str,
        connection_string: str | None = None,
        account_url: str | None = None,
        credential: str | None = None,
        temp_dir: str | None = None,
    ) -> None:
        if not container:
            raise ValueError("an Azure storage needs the name of a container")
        if bool(connection_string) == bool(account_url):
            raise ValueError("an Azure storage needs either connection_string or account_url")
        super().__init__(None, temp_dir)
        self._config = {
            "type": self.TYPE,
            # 0.25 takes the name with the slashes of a path around it.
            "container": container.strip("/"),
            "connection_string": connection_string,
            "account_url": account_url,
            "credential": credential,
        }
        self._account_url = azure_account(self._config).url

    def __repr__(self) -> str:
        return f"container {self._config['container']} at {self._account_url}"

    def _connect(self) -> Bucket:
        return _object_store(self._config)


def _object_store(config: dict[str, str | None]) -> Bucket:
    from determined.storage.object_store import connect

    return connect(config)
