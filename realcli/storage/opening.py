"""Which store a configuration means. A file of its own: the stores know the port, and the port knows no store."""

from __future__ import annotations

from pathlib import Path

from realcli.storage.local import LocalStore
from realcli.storage.port import ObjectStore, StorageConfig
from realcli.storage.s3 import S3Store


def open_store(config: StorageConfig) -> ObjectStore:
    """The store of a configuration. Opens no connection yet."""
    return LocalStore(Path(config.directory)) if config.directory is not None else S3Store(config)
