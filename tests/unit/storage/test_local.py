import threading
from pathlib import Path

import pytest

from realcli.storage import AlreadyStored, NotFound, StorageConfig, StorageRefused
from realcli.storage.opening import open_store
from realcli.storage.paths import SweepPaths, parse_s3_uri, sweep_root


@pytest.fixture
def store(tmp_path: Path):
    return open_store(StorageConfig(directory=str(tmp_path / "store")))


def test_put_once_creates_keeps_and_refuses(store) -> None:
    store.put_once("a/b", b"one")
    store.put_once("a/b", b"one")
    with pytest.raises(AlreadyStored, match="other bytes"):
        store.put_once("a/b", b"two")
    assert store.get("a/b") == b"one"


def test_put_once_takes_files(store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 100_000)
    store.put_once("f", source)
    store.download("f", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()


def test_one_of_many_writers_wins(store) -> None:
    results: list[str] = []

    def put(number: int) -> None:
        try:
            store.put_once("race", b"%d" % number)
            results.append("won")
        except AlreadyStored:
            results.append("lost")

    threads = [threading.Thread(target=put, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["lost"] * 15 + ["won"]
    assert [item.key for item in store.list("")] == ["race"]


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a/../b", "a/.", "a/", "a\0b"])
def test_keys_that_could_leave_the_store_are_refused(store, key: str) -> None:
    with pytest.raises(ValueError, match="not an object key"):
        store.put_once(key, b"")


def test_missing_objects(store, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        store.get("no")
    with pytest.raises(NotFound):
        store.download("no", tmp_path / "x")
    assert not store.exists("no")
    assert list(store.list("no/")) == []


def test_listing_is_by_prefix_and_sorted(store) -> None:
    for key in ("p/2", "p/1", "q/1", "p/10/x"):
        store.put_once(key, b"..")
    assert [item.key for item in store.list("p/1")] == ["p/1", "p/10/x"]
    assert [item.size for item in store.list("p/")] == [2, 2, 2]


def test_a_file_in_the_way_is_an_error_not_a_miss(store) -> None:
    store.put_once("a", b"")
    with pytest.raises(StorageRefused):
        store.put_once("a/b", b"")


def test_a_folder_is_no_object(store, tmp_path: Path) -> None:
    store.put_once("a/b", b"")
    assert not store.exists("a")
    for action in (lambda: store.get("a"), lambda: store.download("a", tmp_path / "x")):
        with pytest.raises(NotFound):
            action()


def test_paths() -> None:
    root = sweep_root("realcli/", "audits", "nightly", "0123abcd-ef01-0000-0000-000000000000")
    assert root == "realcli/sweeps/audits/nightly-0123abcd"
    attempt = SweepPaths(root).attempt(7, 2)
    assert attempt.segment(3) == f"{root}/trials/00007/attempt-2/ledger/000003.jsonl"
    assert attempt.verify(1).seal == f"{root}/trials/00007/attempt-2/verify-1/seal.json"
    assert parse_s3_uri("s3://evals/benchmarks/x/1.0.0") == ("evals", "benchmarks/x/1.0.0")
    with pytest.raises(ValueError, match="s3://bucket/path"):
        parse_s3_uri("http://x")


@pytest.mark.parametrize("text", ['{"bucket": "b", "directory": "/d"}', "{}"])
def test_a_configuration_names_exactly_one_place(text: str) -> None:
    with pytest.raises(ValueError, match="either a bucket or a directory"):
        StorageConfig.from_environment({"REALCLI_STORAGE": text})
