"""Does storage do what the evidence rests on? Write, read back, list, and refuse to overwrite."""

from __future__ import annotations

from realcli.api.base import canonical_json
from realcli.storage.paths import join
from realcli.storage.port import AlreadyStored, NotFound, ObjectStore, StorageRefused

NAME = "storage-check.json"


def check_storage(store: ObjectStore, root: str) -> None:
    """Leaves one small object at `<root>/storage-check.json`, the same each time.

    Raises StorageRefused where the store cannot be relied on, StorageUnavailable where it does not answer.
    """
    key = join(root, NAME)
    data = canonical_json({"note": "written by the plan Job to prove write, read and create-only", "root": root})
    place = f"{key} in {store.describe()}"
    store.put_once(key, data)
    try:
        present = store.get(key)
    except NotFound:
        raise StorageRefused(f"{place} was written and cannot be read back: the store is not consistent, use another") from None
    if present != data:
        raise StorageRefused(f"{place} does not hold what was written: the store is not consistent, use another")
    if key not in {info.key for info in store.list(key)}:
        raise StorageRefused(f"{place} was written and is not listed: allow listing of the bucket (s3:ListBucket)")
    store.put_once(key, data)
    try:
        store.put_once(key, data + b"\n")
    except AlreadyStored:
        return
    raise StorageRefused(
        f"{place} could be overwritten: the store ignores conditional writes (If-None-Match: *), on which the evidence rests; "
        "use a store that has them"
    )
