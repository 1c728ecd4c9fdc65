"""Object store port: S3 or a local directory. The one part of realcli that opens connections."""

from realcli.storage.port import (
    AlreadyStored,
    NotFound,
    ObjectInfo,
    ObjectStore,
    StorageConfig,
    StorageError,
    StorageRefused,
    StorageUnavailable,
    open_store,
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
    "open_store",
]
