from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.base import sha256_digest
from realcli.benchmark.bundles import File, pack, read_tree, unpack, unpacked
from realcli.benchmark.models import INDEX_KEY
from realcli.benchmark.problems import BenchmarkError
from realcli.benchmark.publish import Published, build_index, bundle_key, fetch_bundle, location, publish, read_index
from realcli.benchmark.script import message_of_batch, read_oracle, read_script, spec_of
from realcli.benchmark.suite import load_suite
from realcli.storage.local import LocalStore
from realcli.storage.port import AlreadyStored


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def test_equal_files_give_equal_digests_whatever_their_times_and_order(suite_dir: Path) -> None:
    first = build_index(load_suite(suite_dir))
    for path in sorted(suite_dir.rglob("*"), reverse=True):
        path.touch()
    (suite_dir / "tasks/site-settings/tests/__pycache__").mkdir()
    (suite_dir / "tasks/site-settings/tests/__pycache__/check.pyc").write_bytes(b"x")
    again = build_index(load_suite(suite_dir))
    assert again.index == first.index
    assert again.bundles == first.bundles


@pytest.mark.parametrize(
    ("file", "moves"),
    [("tests/check.py", {"private_bundle", "digest"}), ("instruction.md", {"public_bundle", "digest"})],
)
def test_a_changed_file_changes_its_bundle_and_the_task(suite_dir: Path, file: str, moves: set[str]) -> None:
    before = build_index(load_suite(suite_dir)).index.tasks[1].dump()
    with (suite_dir / "tasks/site-settings" / file).open("a") as out:
        out.write("\n")
    after = build_index(load_suite(suite_dir)).index.tasks[1].dump()
    assert {key for key in after if after[key] != before[key]} == {
        {"private_bundle": "privateBundle", "public_bundle": "publicBundle"}.get(key, key) for key in moves
    }


def test_the_private_part_is_not_in_the_public_bundle(suite_dir: Path) -> None:
    built = build_index(load_suite(suite_dir))
    for task in built.index.tasks:
        public = {file.path.split("/")[0] for file in unpacked(built.bundles[task.public_bundle])}
        private = {file.path.split("/")[0] for file in unpacked(built.bundles[task.private_bundle])}
        assert public == {"task.toml", "instruction.md", "environment"}
        assert private == {"interaction", "run", "tests", "solution"}


def test_published_again_is_the_same_and_nothing_is_written_twice(suite_dir: Path, store: LocalStore) -> None:
    suite = load_suite(suite_dir)
    first, second = publish(suite, store, "benchmarks"), publish(suite, store, "benchmarks")
    assert (first.created, second.created) == (True, False)
    assert first.key == "benchmarks/starter/1.1.0"
    assert (first.digest, first.index) == (second.digest, second.index)
    keys = [info.key for info in store.list("")]
    assert f"{first.key}/{INDEX_KEY}" in keys
    assert len(keys) == 5


def test_other_content_under_the_same_version_is_refused(suite_dir: Path, store: LocalStore) -> None:
    publish(load_suite(suite_dir), store, "b")
    before = sorted(store.list(""))
    with (suite_dir / "tasks/site-settings/instruction.md").open("a") as out:
        out.write("\n")
    with pytest.raises(
        BenchmarkError, match=r"version 1\.1\.0 is already published with other content; raise version in benchmark\.toml"
    ):
        publish(load_suite(suite_dir), store, "b")
    assert sorted(store.list("")) == before


def test_a_rival_between_look_and_write_is_refused_too(suite_dir: Path, store: LocalStore) -> None:
    class Late(LocalStore):
        def put_once(self, key: str, data: bytes | Path) -> None:
            if key.endswith(INDEX_KEY):
                raise AlreadyStored(key)
            super().put_once(key, data)

    with pytest.raises(BenchmarkError, match="already published with other content"):
        publish(load_suite(suite_dir), Late(store._root), "b")


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", "starter/1.1.0"),
        ("b/", "b/starter/1.1.0"),
        ("b/starter/1.1.0", "b/starter/1.1.0"),
        ("nostarter/1.1.0", "nostarter/1.1.0/starter/1.1.0"),
    ],
)
def test_where_a_version_lies(suite_dir: Path, prefix: str, expected: str) -> None:
    assert location(load_suite(suite_dir), prefix) == expected


def test_what_was_published_is_read_back(suite_dir: Path, store: LocalStore, tmp_path: Path) -> None:
    done = publish(load_suite(suite_dir), store, "b")
    index, digest = read_index(store, done.key, done.digest)
    assert (index, digest) == (done.index, done.digest)
    task, folder = index.tasks[1], suite_dir / "tasks/site-settings"
    fetch_bundle(store, done.key, task.public_bundle, tmp_path / "public")
    fetch_bundle(store, done.key, task.private_bundle, tmp_path / "private")
    assert spec_of(tmp_path / "public") == (folder / "instruction.md").read_text()
    assert read_script(tmp_path / "private") == read_script(folder)
    assert read_oracle(tmp_path / "private") == read_oracle(folder)
    assert (tmp_path / "private/tests/test.sh").stat().st_mode & 0o777 == 0o755
    assert message_of_batch(read_script(folder), "site").split("\n\n")[1].startswith("And in the same section set `listen`")


def test_reading_says_what_is_wrong_with_the_place(suite_dir: Path, store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"starter/1\.1\.0/index\.json in directory .* does not exist; publish it"):
        read_index(store, "starter/1.1.0")
    done = publish(load_suite(suite_dir), store, "")
    with pytest.raises(BenchmarkError, match=f"has the digest {done.digest}, expected sha256:0"):
        read_index(store, done.key, "sha256:" + "0" * 64)
    store.put_once("other/index.json", b"{}")
    with pytest.raises(BenchmarkError, match="is no benchmark index"):
        read_index(store, "other")
    with pytest.raises(BenchmarkError, match="does not exist in directory"):
        fetch_bundle(store, "nowhere", done.index.tasks[0].public_bundle, tmp_path / "x")
    digest = sha256_digest(b"something")
    store.put_once(bundle_key("", digest), b"something else")
    with pytest.raises(BenchmarkError, match="the object was changed"):
        fetch_bundle(store, "", digest, tmp_path / "x")
    store.put_once(bundle_key("", sha256_digest(b"no zstd")), b"no zstd")
    with pytest.raises(BenchmarkError, match="the bundle is damaged"):
        fetch_bundle(store, "", sha256_digest(b"no zstd"), tmp_path / "x")
    assert not (tmp_path / "x/anything").exists()


def a_tar(fill: Callable[[tarfile.TarFile], object]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        fill(tar)
    return zstandard.ZstdCompressor().compress(out.getvalue())


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "./x", "a//b", ".", ".."])
def test_a_bundle_cannot_leave_its_directory(tmp_path: Path, name: str) -> None:
    bundle = a_tar(lambda tar: tar.addfile(tarfile.TarInfo(name), io.BytesIO(b"")))
    with pytest.raises(ValueError, match="would leave its directory"):
        unpack(bundle, tmp_path / "in")
    assert list((tmp_path / "in").iterdir()) == []


def test_a_bundle_holds_plain_files_alone(tmp_path: Path) -> None:
    def link(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("l")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(member)

    with pytest.raises(ValueError, match="no plain file"):
        unpack(a_tar(link), tmp_path / "in")


def test_a_bundle_holds_no_file_of_a_claimed_size(tmp_path: Path) -> None:
    """A sparse member says how long it is: a few bytes may unpack to more than there is memory."""

    def sparse(tar: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("big")
        claims = {"major": "0", "minor": "1", "size": str(1 << 50), "map": "0,0"}
        member.pax_headers = {f"GNU.sparse.{name}": value for name, value in claims.items()}
        tar.addfile(member)

    with pytest.raises(ValueError, match="no plain file"):
        unpack(a_tar(sparse), tmp_path / "in")


@pytest.mark.parametrize(("names", "text"), [(["a", "a"], "a path twice"), (["a/b", "a"], "'a' and 'a/b' below it")])
def test_a_bundle_holds_a_path_once(tmp_path: Path, names: list[str], text: str) -> None:
    bundle = a_tar(lambda tar: [tar.addfile(tarfile.TarInfo(name), io.BytesIO(b"")) for name in names])
    with pytest.raises(ValueError, match=text):
        unpack(bundle, tmp_path / "in")


def test_publishing_again_puts_a_lost_bundle_back(suite_dir: Path, store: LocalStore, tmp_path: Path) -> None:
    """What every message about a damaged benchmark tells people to do."""
    suite = load_suite(suite_dir)
    done = publish(suite, store, "b")
    digest = done.index.tasks[0].private_bundle
    (tmp_path / "store" / bundle_key(done.key, digest)).unlink()
    assert publish(suite, store, "b") == Published(done.key, done.digest, done.index, created=False)
    fetch_bundle(store, done.key, digest, tmp_path / "x")


def test_a_bundle_is_not_unpacked_over_something(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    with pytest.raises(ValueError, match="is not empty"):
        unpack(pack([File("a", 0o644, b"")]), tmp_path)


LETTERS = st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs", "Cc"])
NAMES = st.lists(st.text(LETTERS, min_size=1, max_size=20), min_size=1, max_size=3)
FILES = st.dictionaries(NAMES.map("/".join), st.tuples(st.sampled_from([0o644, 0o755]), st.binary(max_size=200)), max_size=5)


@given(FILES)
def test_packing_is_undone_by_unpacking(files: dict[str, tuple[int, bytes]]) -> None:
    names = [
        n for n in files
        if not any(part in (".", "..") for part in n.split("/")) and not any(n.startswith(other + "/") for other in files)
    ]  # fmt: skip
    tree = [File(name, *files[name]) for name in names]
    assert unpacked(pack(tree)) == sorted(tree)
    assert pack(reversed(tree)) == pack(tree)


def test_a_tree_is_read_sorted_with_the_x_bit_alone(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x").write_text("1")
    (tmp_path / "b/x").chmod(0o700)
    (tmp_path / "a").write_text("2")
    (tmp_path / "a").chmod(0o666)
    (tmp_path / "c").write_text("not asked for")
    assert read_tree(tmp_path, ["b", "a", "absent"]) == [File("a", 0o644, b"2"), File("b/x", 0o755, b"1")]
