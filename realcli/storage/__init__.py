"""Object store port: S3 or a local directory. The one part of realcli that opens connections.

`realcli.storage.opening.open_store` opens one; it is not here because it needs boto3, and who only wants a path does not.
"""

from realcli.storage.port import (
    AlreadyStored,
    NotFound,
    ObjectInfo,
    ObjectStore,
    StorageConfig,
    StorageError,
    StorageRefused,
    StorageUnavailable,
)

__all__ = [
    "AlreadyStored",
    "NotFound",
    "ObjectInfo",
    "ObjectStore",
    "StorageConfig",
    "StorageError",
    "StorageRefused",
    "StorageUnavailable",
]
