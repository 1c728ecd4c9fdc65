"""The S3 store against a real server."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from realcli.storage import AlreadyStored, NotFound, ObjectStore, StorageConfig, StorageRefused, StorageUnavailable
from realcli.storage.opening import open_store


@pytest.fixture
def credentials(s3_server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)


@pytest.fixture
def store(s3_server, credentials: None) -> ObjectStore:
    return open_store(StorageConfig(bucket=s3_server.new_bucket(), endpoint=s3_server.endpoint))


def test_create_keep_refuse_read_list(store: ObjectStore, tmp_path: Path) -> None:
    store.put_once("a/1", b"one")
    store.put_once("a/1", b"one")
    with pytest.raises(AlreadyStored):
        store.put_once("a/1", b"two")
    big = tmp_path / "big"
    big.write_bytes(b"0123456789abcdef" * (1 << 16))
    store.put_once("a/big", big)
    store.put_once("a/big", big)
    store.download("a/big", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == big.read_bytes()
    assert store.get("a/1") == b"one"
    assert [(item.key, item.size) for item in store.list("a/")] == [("a/1", 3), ("a/big", 1 << 20)]
    assert store.exists("a/1")
    assert not store.exists("a/2")
    with pytest.raises(NotFound):
        store.get("a/2")


def test_of_many_racing_writers_one_wins(store: ObjectStore) -> None:
    def put(number: int) -> str:
        try:
            store.put_once("race", b"%d" % number)
        except AlreadyStored:
            return "lost"
        return "won"

    with ThreadPoolExecutor(8) as pool:
        results = sorted(pool.map(put, range(16)))
    assert results == ["lost"] * 15 + ["won"]


def test_wrong_credentials_are_a_refusal_that_says_what_to_do(s3_server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = open_store(StorageConfig(bucket=s3_server.new_bucket(), endpoint=s3_server.endpoint))
    for action in (
        lambda: store.put_once("k", b""),
        lambda: store.get("k"),
        lambda: store.exists("k"),
        lambda: list(store.list("")),
    ):
        with pytest.raises(StorageRefused, match="credentials Secret"):
            action()


def test_a_missing_bucket_is_a_refusal(s3_server, credentials: None) -> None:
    store = open_store(StorageConfig(bucket="no-such-bucket", endpoint=s3_server.endpoint))
    with pytest.raises(StorageRefused, match="bucket"):
        store.get("k")


def test_a_server_that_is_not_there_is_unavailable(credentials: None) -> None:
    store = open_store(StorageConfig(bucket="bucket", endpoint="http://127.0.0.1:9"))
    with pytest.raises(StorageUnavailable):
        store.get("k")
