"""The object store port: create-only writes, reads, listing. Nothing is overwritten and nothing is chosen by date."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import model_validator

from realcli.api.base import Frozen
from realcli.storage.paths import parse_s3_uri

STORAGE_ENV = "REALCLI_STORAGE"


class StorageError(Exception):
    """Base of everything a store raises."""


class NotFound(StorageError):
    """There is no such object."""


class AlreadyStored(StorageError):
    """The key holds other bytes. Whatever lies there stays."""


class StorageRefused(StorageError):
    """The store refuses: credentials, bucket, policy, a malformed request. Waiting does not help."""


class StorageUnavailable(StorageError):
    """The store did not answer, or answered with an error that passes. Trying again may help."""


class ObjectInfo(NamedTuple):
    """One listed object."""

    key: str
    size: int  # bytes


class ObjectStore(Protocol):
    """Create-only object storage. Keys are relative, "/"-separated, never start with "/" and hold no "..".

    Safe to call from several threads at once.
    """

    def put_once(self, key: str, data: bytes | Path) -> None:
        """Create the object. Equal bytes there already: success. Other bytes: `AlreadyStored`."""

    def get(self, key: str) -> bytes:
        """The whole object; `NotFound`."""

    def download(self, key: str, path: Path) -> None:
        """The object into a file (replaced only when complete); `NotFound`."""

    def exists(self, key: str) -> bool:
        """True if the object is there. A refusal is an error, never False."""

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix`, in key order."""

    def describe(self) -> str:
        """For messages: `s3://bucket at http://endpoint`."""


class StorageConfig(Frozen):
    """Where a store is: a bucket (credentials come from the AWS_* environment) or a local directory."""

    bucket: str | None = None
    endpoint: str | None = None
    region: str = "us-east-1"
    directory: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> StorageConfig:
        if (self.bucket is None) == (self.directory is None):
            raise ValueError("name either a bucket or a directory")
        return self

    @staticmethod
    def from_environment(environ: Mapping[str, str] = os.environ) -> StorageConfig:
        """From REALCLI_STORAGE; ValueError says what was expected."""
        text = environ.get(STORAGE_ENV)
        if not text:
            raise ValueError(f'{STORAGE_ENV} is not set; expected JSON such as {{"bucket": "evals", "endpoint": "http://…"}}')
        return StorageConfig.model_validate(json.loads(text))

    @staticmethod
    def of_uri(uri: str, endpoint: str | None = None, region: str = "us-east-1") -> tuple[StorageConfig, str]:
        """(config, key) of `s3://bucket/key`, `file:///directory` or a plain directory (key "")."""
        if not uri:
            raise ValueError("an empty text names nothing; expected s3://bucket/path or a directory")
        if uri.startswith("file://"):
            return StorageConfig(directory=uri.removeprefix("file://")), ""
        if "://" not in uri:
            return StorageConfig(directory=str(Path(uri).absolute())), ""
        bucket, key = parse_s3_uri(uri)
        return StorageConfig(bucket=bucket, endpoint=endpoint, region=region), key

    def uri(self, key: str) -> str:
        """What a person reads: s3://bucket/key or file:///directory/key."""
        return f"s3://{self.bucket}/{key}" if self.bucket else f"file://{self.directory}/{key}"


def check_key(key: str) -> str:
    """The key itself; ValueError for one that could leave the store."""
    parts = key.split("/")
    if not key or key.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in key:
        raise ValueError(f"{key!r} is not an object key; expected relative names joined by single slashes")
    return key
