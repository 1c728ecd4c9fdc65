"""Images on disk: both kinds of archive, whiteouts, links that try to leave, damage."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from realcli_cli.local.archive import open_archive
from realcli_cli.local.layers import resolve, unpack
from realcli_cli.main import UserError

Entry = tuple[str, dict[str, Any]]
Compress = Callable[[bytes], bytes]
ENV = ["PATH=/bin", "A=b=c"]


def layer(*entries: Entry) -> bytes:
    """A tar: (name, {type?, data?, link?, mode?, uid?})."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, about in entries:
            info = tarfile.TarInfo(name)
            data = about.get("data", b"")
            info.type = about.get("type", tarfile.REGTYPE)
            info.linkname = about.get("link", "")
            info.mode = about.get("mode", 0o755 if info.type == tarfile.DIRTYPE else 0o644)
            info.size = len(data)
            info.uid = info.gid = about.get("uid", os.getuid())
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def file(name: str, data: bytes = b"x", **more: Any) -> Entry:
    return name, {"data": data, **more}


def folder(name: str) -> Entry:
    return name, {"type": tarfile.DIRTYPE}


def link(name: str, to: str) -> Entry:
    return name, {"type": tarfile.SYMTYPE, "link": to}


def hard(name: str, to: str) -> Entry:
    return name, {"type": tarfile.LNKTYPE, "link": to}


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def config(layers: list[bytes]) -> bytes:
    inner = {"Env": ENV, "WorkingDir": "/app", "User": "0"}
    return json.dumps({"config": inner, "rootfs": {"diff_ids": [f"sha256:{sha(one)}" for one in layers]}}).encode()


def write_tar(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, to in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, to
            tar.addfile(info)
    return path


def docker_save(path: Path, *layers: bytes) -> Path:
    names = [f"{n}/layer.tar" for n in range(len(layers))]
    manifest = [{"Config": "c.json", "RepoTags": ["x:1"], "Layers": names}]
    return write_tar(
        path,
        {"manifest.json": json.dumps(manifest).encode(), "c.json": config(list(layers)), **dict(zip(names, layers, strict=True))},
    )


def oci_files(layers: list[bytes], compress: Compress = lambda data: data) -> dict[str, bytes]:
    """As an OCI layout holds them: an index of platforms, then the manifest."""
    packed = [compress(one) for one in layers]
    about = config(layers)
    manifest = json.dumps(
        {"config": {"digest": f"sha256:{sha(about)}"}, "layers": [{"digest": f"sha256:{sha(p)}"} for p in packed]}
    ).encode()
    arm = {"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}}
    ours = {"digest": f"sha256:{sha(manifest)}", "platform": {"os": "linux", "architecture": "amd64"}}
    index = json.dumps({"manifests": [arm, ours]}).encode()
    blobs = {f"blobs/sha256/{sha(data)}": data for data in [*packed, about, manifest]}
    return {"index.json": index, "oci-layout": b"{}", **blobs}


def unpacked(archive: Path, dest: Path) -> dict[str, Any]:
    """path -> content, link target or "dir"."""
    with open_archive(archive) as opened:
        unpack(opened, dest)
    return tree(dest)


def tree(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name] = (
            os.readlink(path)
            if path.is_symlink()
            else "dir"
            if path.is_dir()
            else path.read_bytes()
            if path.is_file()
            else "other"
        )
    return found


LOWER = layer(
    folder("app"), file("app/a", b"1"), file("app/b", b"2"), folder("app/sub"), file("app/sub/c", b"3"), link("lib", "usr/lib")
)


@pytest.mark.parametrize("compress", [lambda d: d, gzip.compress, zstandard.compress], ids=["plain", "gzip", "zstd"])
def test_an_oci_archive_and_folder(tmp_path: Path, compress: Compress) -> None:
    files = oci_files([LOWER], compress)
    for name, data in files.items():
        (tmp_path / "oci" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "oci" / name).write_bytes(data)
    for number, archive in enumerate([write_tar(tmp_path / "a.tar", files), tmp_path / "oci"]):
        found = unpacked(archive, tmp_path / f"root{number}")
        assert found == {"app": "dir", "app/a": b"1", "app/b": b"2", "app/sub": "dir", "app/sub/c": b"3", "lib": "usr/lib"}


def test_a_docker_archive_with_its_configuration_and_linked_layers(tmp_path: Path) -> None:
    archive = docker_save(tmp_path / "d.tar", LOWER)
    with open_archive(archive) as opened:
        assert (opened.config.env, opened.config.workdir) == ({"PATH": "/bin", "A": "b=c"}, "/app")
        assert opened.config.digest == f"sha256:{sha(config([LOWER]))}"
    manifest = json.dumps([{"Config": "c.json", "Layers": ["0/layer.tar", "1/layer.tar"]}]).encode()
    files = {"manifest.json": manifest, "c.json": config([LOWER, LOWER]), "0/layer.tar": LOWER}
    twice = write_tar(tmp_path / "l.tar", files, {"1/layer.tar": "../0/layer.tar"})
    assert unpacked(twice, tmp_path / "r")["app/a"] == b"1"


UPPER: dict[str, tuple[bytes, dict[str, Any]]] = {
    "a whiteout": (layer(file("app/.wh.a", b"")), {"app/a": None, "app/b": b"2"}),
    "a whiteout of a folder": (layer(file("app/.wh.sub", b"")), {"app/sub": None, "app/sub/c": None}),
    "an opaque folder keeps what its layer brings": (
        layer(file("app/new", b"n"), file("app/.wh..wh..opq", b""), file("app/sub/d", b"4")),
        {"app/a": None, "app/new": b"n", "app/sub/c": None, "app/sub/d": b"4"},
    ),
    "an opaque mark at the end hides what lies below what its layer brings": (
        layer(folder("app/sub"), file("app/sub/d", b"4"), file("app/.wh..wh..opq", b"")),
        {"app/a": None, "app/sub": "dir", "app/sub/c": None, "app/sub/d": b"4"},
    ),
    "an opaque mark keeps what its layer brings without its folder": (
        layer(file("app/sub/d", b"4"), file("app/.wh..wh..opq", b"")),
        {"app/sub/c": None, "app/sub/d": b"4"},
    ),
    "a file becomes a folder that nobody names": (layer(file("app/a/in", b"i")), {"app/a": "dir", "app/a/in": b"i"}),
    "a file becomes a folder": (layer(folder("app/a"), file("app/a/in", b"i")), {"app/a": "dir", "app/a/in": b"i"}),
    "a folder becomes a file": (layer(file("app/sub", b"f")), {"app/sub": b"f", "app/sub/c": None}),
    "a folder becomes a link": (layer(link("app/sub", "a")), {"app/sub": "a"}),
    "a link becomes a folder": (layer(folder("lib")), {"lib": "dir"}),
    "a file below a link lands where the image's root has it": (
        layer(file("lib/so", b"s")),
        {"usr/lib/so": b"s", "lib": "usr/lib"},
    ),
    "a hard link": (layer(hard("app/h", "app/b")), {"app/h": b"2"}),
    "a FIFO": (layer(("app/f", {"type": tarfile.FIFOTYPE})), {"app/f": "other"}),
    "a device is left out": (layer(("app/dev", {"type": tarfile.CHRTYPE})), {"app/dev": None}),
    "the root itself": (layer(folder("./")), {"app/a": b"1"}),
    "a whiteout of nothing": (layer(file(".wh.nothing", b"")), {"app/a": b"1"}),
}


@pytest.mark.parametrize("name", UPPER)
def test_what_an_upper_layer_does(tmp_path: Path, name: str) -> None:
    upper, expected = UPPER[name]
    found = unpacked(docker_save(tmp_path / "d.tar", LOWER, upper), tmp_path / "root")
    assert {key: found.get(key) for key in expected} == expected


def test_modes_owners_and_times_are_kept(tmp_path: Path) -> None:
    unpacked(docker_save(tmp_path / "d.tar", layer(file("s", b"x", mode=0o4755), file("r", b"x", mode=0o400))), tmp_path / "root")
    assert stat.S_IMODE((tmp_path / "root/s").stat().st_mode) == 0o4755
    assert stat.S_IMODE((tmp_path / "root/r").stat().st_mode) == 0o400
    assert (tmp_path / "root/s").stat().st_mtime == 0


HOSTILE: dict[str, bytes] = {
    "dots": layer(file("../out")),
    "dots inside": layer(file("a/../../out")),
    "an absolute name stays inside": layer(file("/out")),
    "through an absolute link": layer(link("way", "/tmp"), file("way/out")),
    "through a link with dots": layer(link("way", "../../../../.."), file("way/out")),
    "a link onto itself is replaced": layer(link("out", "{outside}"), file("out")),
    "a hard link with dots": layer(hard("h", "../out")),
    "a hard link through a link": layer(link("way", "{outside}"), hard("h", "way/secret")),
    "a circle of links": layer(link("a", "b"), link("b", "a"), file("a/out")),
    "an opaque mark through a link": layer(link("way", "{outside}"), file("way/.wh..wh..opq", b"")),
    "a whiteout through a link": layer(link("way", "{outside}"), file("way/.wh.secret", b"")),
    "a whiteout of the folder above the root": layer(file(".wh...", b"")),
    "a whiteout of the root": layer(folder("app"), file("app/.wh...", b"")),
    "a whiteout of its own folder": layer(folder("app"), file("app/.wh..", b"")),
    "a whiteout of no name": layer(folder("app"), file("app/.wh.", b"")),
    "a folder over a link": layer(link("way", "{outside}"), folder("way"), file("way/secret", b"mine")),
}


REFUSED = {
    "dots",
    "dots inside",
    "a hard link with dots",
    "a hard link through a link",
    "a circle of links",
    "a whiteout of the folder above the root",
    "a whiteout of the root",
    "a whiteout of its own folder",
    "a whiteout of no name",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_outside_is_touched(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"kept")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(HOSTILE[name])) as old, tarfile.open(fileobj=buffer, mode="w") as new:
        for member in old:
            member.linkname = member.linkname.replace("{outside}", str(outside))
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
    before = tree(tmp_path / "outside")
    root = tmp_path / "deep" / "root"
    root.parent.mkdir()
    names = set(os.listdir(tmp_path))
    with pytest.raises(UserError) if name in REFUSED else contextlib.nullcontext():
        unpacked(docker_save(tmp_path / "d.tar", buffer.getvalue()), root)
    assert tree(outside) == before
    assert set(os.listdir(tmp_path)) == names | {"d.tar"}
    assert os.listdir(tmp_path / "deep") == ["root"]
    assert not Path("/tmp/out").exists()


def test_damage_is_named(tmp_path: Path) -> None:
    files = oci_files([LOWER])
    name = f"blobs/sha256/{sha(LOWER)}"
    with pytest.raises(UserError, match="has the digest"):
        unpacked(write_tar(tmp_path / "a.tar", files | {name: LOWER.replace(b"app/a", b"app/z")}), tmp_path / "r1")
    with pytest.raises(UserError, match="damaged"):
        unpacked(docker_save(tmp_path / "b.tar", b"\x1f\x8bno gzip"), tmp_path / "r2")
    for text, data in (("neither a `docker save` archive", b"nonsense"), ("neither", b"")):
        (tmp_path / "c.tar").write_bytes(data)
        with pytest.raises(UserError, match=text):
            unpacked(tmp_path / "c.tar", tmp_path / "r3")
    with pytest.raises(UserError, match="no such file"):
        unpacked(tmp_path / "none.tar", tmp_path / "r4")
    only_arm = json.dumps(
        {"manifests": [{"digest": "sha256:" + "0" * 64, "platform": {"os": "linux", "architecture": "arm64"}}]}
    ).encode()
    with pytest.raises(UserError, match="amd64"):
        unpacked(write_tar(tmp_path / "e.tar", {"index.json": only_arm}), tmp_path / "r5")


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b"[5]", b'[{"Config": 5}]', b"5", b'[{"Config": "manifest.json", "Layers": []}]', b"9" * 5000]
)
def test_an_archive_whose_json_says_something_else(tmp_path: Path, text: bytes) -> None:
    with (
        pytest.raises(UserError, match="neither a `docker save` archive"),
        open_archive(write_tar(tmp_path / "a.tar", {"manifest.json": text})),
    ):
        pass
    with (
        pytest.raises(UserError, match="neither a `docker save` archive"),
        open_archive(write_tar(tmp_path / "b.tar", {"index.json": text})),
    ):
        pass


def test_a_folder_s_files_are_its_own(tmp_path: Path) -> None:
    """A manifest names files; none of them lies outside of the layout."""
    (tmp_path / "secret").write_bytes(LOWER)
    (tmp_path / "oci").mkdir()
    (tmp_path / "oci" / "c.json").write_bytes(config([LOWER]))
    (tmp_path / "oci" / "way").symlink_to(tmp_path)
    for number, name in enumerate(["../secret", str(tmp_path / "secret"), "way/secret"]):
        (tmp_path / "oci" / "manifest.json").write_text(json.dumps([{"Config": "c.json", "Layers": [name]}]))
        with pytest.raises(UserError, match="lies outside"):
            unpacked(tmp_path / "oci", tmp_path / f"root{number}")


def test_resolve_is_what_a_process_in_that_root_sees(tmp_path: Path) -> None:
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("/usr/lib")
    (tmp_path / "usr/up").symlink_to("../../../lib")
    for parts in (["lib"], ["usr", "up"], ["..", "lib"], ["usr", "..", "lib", "."]):
        assert resolve(tmp_path, parts) == str(tmp_path / "usr/lib"), parts
