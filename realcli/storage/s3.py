"""S3 as object store, by boto3. Creation is a conditional put (`If-None-Match: *`); a 412 is compared with what lies there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from realcli.storage.port import (
    AlreadyStored,
    NotFound,
    ObjectInfo,
    StorageConfig,
    StorageRefused,
    StorageUnavailable,
    check_key,
)

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MAX_OBJECT = 4 << 30  # one PUT; the largest archive a trial may leave is far smaller
_FAILURES = (ClientError, BotoCoreError, ResponseParserError)
_TRANSIENT = (ConnectionError, FlexibleChecksumError, HTTPClientError, IncompleteReadError, ResponseParserError)
_TRANSIENT_CODES = {
    "BadDigest",
    "IncompleteBody",
    "InternalError",
    "OperationAborted",
    "RequestTimeout",
    "SlowDown",
    "Throttling",
}
_RACES = {"ConditionalRequestConflict", "OperationAborted"}
_MISSING = {"NoSuchKey", "404", "NotFound"}
_REFUSALS = {
    "NoSuchBucket": "the bucket does not exist: create it or correct spec.storage.bucket",
    "AccessDenied": "access is denied: check the credentials Secret and the bucket's policy",
    "403": "access is denied: check the credentials Secret and the bucket's policy",
    "InvalidAccessKeyId": "the access key is unknown: check the credentials Secret",
    "SignatureDoesNotMatch": "the secret key is wrong: check the credentials Secret",
    "ExpiredToken": "the session token has expired: renew the credentials Secret",
    "InvalidToken": "the session token is not valid: check the credentials Secret",
    "InvalidBucketName": "the bucket name is not valid: correct spec.storage.bucket",
    "NotImplemented": "the server cannot create an object only if it is not there (If-None-Match): use one that can",
    "501": "the server cannot create an object only if it is not there (If-None-Match): use one that can",
}


class S3Store:
    """A bucket. Credentials come from the AWS_* environment; connections are pooled and thread-safe."""

    def __init__(self, config: StorageConfig) -> None:
        if config.bucket is None:
            raise ValueError("an S3 store needs a bucket")
        self._config = config
        self._bucket = config.bucket
        self._client: S3Client = boto3.session.Session().client(
            "s3",
            endpoint_url=config.endpoint,
            region_name=config.region,
            config=Config(
                signature_version="s3v4",
                # path style is what every S3-compatible server understands; AWS itself wants its own default
                s3={"addressing_style": "path" if config.endpoint else "auto"},
                retries={"max_attempts": 4, "mode": "standard"},
                connect_timeout=10,
                read_timeout=60,
            ),
        )

    def put_once(self, key: str, data: bytes | Path) -> None:
        """See `ObjectStore.put_once`."""
        check_key(key)
        size = data.stat().st_size if isinstance(data, Path) else len(data)
        if size > MAX_OBJECT:
            raise StorageRefused(f"{key} is {size} bytes; one object may have {MAX_OBJECT}")
        for _ in range(3):
            try:
                if isinstance(data, Path):
                    with data.open("rb") as body:
                        self._client.put_object(Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*")
                else:
                    self._client.put_object(Bucket=self._bucket, Key=key, Body=data, IfNoneMatch="*")
                return
            except _FAILURES as error:
                code = _code(error)
                if code in ("PreconditionFailed", "412"):
                    if self._sha256(key) == _sha256_of(data):
                        return
                    raise AlreadyStored(f"{self._config.uri(key)} holds other bytes; nothing was written") from None
                if code not in _RACES:  # a racing put of the same key: look again
                    raise self._error(error, key) from error
        raise StorageUnavailable(f"{self._config.uri(key)}: other writers of the same key kept racing")

    def get(self, key: str) -> bytes:
        """See `ObjectStore.get`."""
        with self._asking(check_key(key)):
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()

    def download(self, key: str, path: Path) -> None:
        """See `ObjectStore.download`."""
        part = path.with_name(path.name + ".part")
        try:
            with self._asking(check_key(key)), part.open("wb") as out:
                for chunk in self._client.get_object(Bucket=self._bucket, Key=key)["Body"].iter_chunks(1 << 20):
                    out.write(chunk)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def exists(self, key: str) -> bool:
        """See `ObjectStore.exists`."""
        try:
            with self._asking(check_key(key)):
                self._client.head_object(Bucket=self._bucket, Key=key)
            return True
        except NotFound:
            self._head_bucket(key)  # the answer to HEAD has no body: the object is not there, or the bucket is not
            return False

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        pages = iter(self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix))
        while True:
            with self._asking(prefix):
                page = next(pages, None)
            if page is None:
                return
            for item in page.get("Contents", []):
                if not item["Key"].endswith("/"):  # a folder a console made: no key of ours ends so
                    yield ObjectInfo(item["Key"], item["Size"])

    def describe(self) -> str:
        """See `ObjectStore.describe`."""
        return f"s3://{self._bucket}" + (f" at {self._config.endpoint}" if self._config.endpoint else "")

    def _sha256(self, key: str) -> str:
        digest = hashlib.sha256()
        with self._asking(key):
            for chunk in self._client.get_object(Bucket=self._bucket, Key=key)["Body"].iter_chunks(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()

    def _head_bucket(self, key: str) -> None:
        try:
            with self._asking(key):
                self._client.head_bucket(Bucket=self._bucket)
        except NotFound:
            raise StorageRefused(f"{self._config.uri(key)}: {_REFUSALS['NoSuchBucket']}") from None

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        """A request about `key`; what goes wrong with it is one of our errors."""
        try:
            yield
        except _FAILURES as error:
            raise self._error(error, key) from error

    def _error(self, error: Exception, key: str) -> Exception:
        where = f"{self._config.uri(key)}" + (f" at {self._config.endpoint}" if self._config.endpoint else "")
        if isinstance(error, (NoCredentialsError, PartialCredentialsError)):
            return StorageRefused(f"{where}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        if isinstance(error, ClientError):
            code, status = _code(error), _status(error)
            if code in _MISSING:
                return NotFound(f"{where} does not exist")
            if code in _REFUSALS:
                return StorageRefused(f"{where}: {_REFUSALS[code]} ({code})")
            if status >= 500 or status == 429 or code in _TRANSIENT_CODES:
                return StorageUnavailable(f"{where}: {code} ({status})")
            return StorageRefused(f"{where}: {error.response.get('Error', {}).get('Message', '')} ({code}, {status})")
        if isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
            return StorageRefused(
                f"{where}: nobody vouches for the server's certificate: put its authority into the Secret's ca.crt"
            )
        if isinstance(error, _TRANSIENT):
            return StorageUnavailable(f"{where}: {error}")
        return StorageRefused(f"{where}: {error}")


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _status(error: ClientError) -> int:
    metadata: Any = error.response.get("ResponseMetadata", {})
    return int(metadata.get("HTTPStatusCode", 0))


def _sha256_of(data: bytes | Path) -> str:
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    with data.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
