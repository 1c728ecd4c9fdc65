#!/usr/bin/env python3
"""Builds the container images, loads them into the kind node and says what they are called.

    images.py [--load] [--only NAME ...]      names: base operator session judge toolkit agent-claude-code agent-codex
                                              seaweedfs provider empty tasks (all of them without --only)

A tag is a digest of what goes into the image, so an unchanged image is neither built nor loaded again. The names are
written to out/images.json (and as chart values to out/values.images.json).

The base is `debian:bookworm-slim` where a container registry answers, else the same system made from Debian packages;
REALCLI_BASE names another one. Python packages come from constraints.txt with their hashes, the agent CLIs from npm.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import terminus_templates

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("REALCLI_CACHE") or Path.home() / ".cache" / "realcli")
OUT = ROOT / "out"
NODE = "realcli-control-plane"
REPOSITORY = "realcli.local"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
PACKAGES = ["realcli", *(str(p) for p in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] if p != "realcli")]
BASE_PACKAGES = ["python3", "tmux", "procps", "ca-certificates"]
KEPT_TAGS = 6
SKIPPED = {"__pycache__", ".mypy_cache", ".ruff_cache", "node_modules"}


def say(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, cwd: Path | None = None, stdin: str | None = None) -> str:
    """Output of a command; a failure shows all that the command said."""
    done = subprocess.run([str(c) for c in command], cwd=cwd, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
        sys.exit(f"images.py: {' '.join(str(c) for c in command[:4])} ... failed with {done.returncode}:\n{tail}")
    return done.stdout


def succeeds(*command: str) -> bool:
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


# -- what an image is made from ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    """A file or folder at a place in the build context."""

    at: str
    source: Path

    def files(self) -> Iterator[tuple[str, Path]]:
        if self.source.is_file():
            yield self.at, self.source
            return
        for path in sorted(self.source.rglob("*")):
            if path.is_file() and not SKIPPED.intersection(path.relative_to(self.source).parts):
                yield f"{self.at}/{path.relative_to(self.source)}", path


@dataclass(frozen=True)
class Image:
    """One image: everything in `inputs`, `facts` and `args` decides its tag; `prepare` adds what is made for it."""

    name: str
    dockerfile: Path
    inputs: list[Put]
    args: dict[str, str] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)
    prepare: Callable[[Path], None] | None = None
    also: str | None = None  # a fixed name beside the tag, e.g. the docker_image of a task

    @property
    def ref(self) -> str:
        files = content([("Dockerfile", self.dockerfile), *(f for put in self.inputs for f in put.files())])
        digest = hashlib.sha256(json.dumps([self.args, self.facts, files]).encode()).hexdigest()
        return f"{REPOSITORY}/{self.name}:{VERSION}-{digest[:12]}"

    def ensure(self) -> str:
        ref = self.ref
        if not succeeds("docker", "image", "inspect", ref):
            begin = time.monotonic()
            context = fresh_folder(CACHE / "context" / self.name)
            for at, path in (f for put in self.inputs for f in put.files()):
                link_or_copy(path, context / at)
            if self.prepare:
                self.prepare(context)
            args = [f"--build-arg={key}={value}" for key, value in self.args.items()]
            run("docker", "build", *args, "-t", ref, "-f", self.dockerfile, context)
            shutil.rmtree(context)
            say(f"built {ref}: {time.monotonic() - begin:.0f} s")
        if self.also:
            run("docker", "tag", ref, self.also)
        return ref


def content(files: Iterable[tuple[str, Path]]) -> str:
    """One digest of names, contents and whether a file can be executed."""
    seen = hashlib.sha256()
    for at, path in files:
        seen.update(f"{at} {path.stat().st_mode & 0o111:o} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return seen.hexdigest()[:12]


def fresh_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def link_or_copy(source: Path, target: Path) -> None:
    """Large files of the cache are linked into the context; the clone may be on another disk, so it is copied."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_relative_to(CACHE):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


# -- base ----------------------------------------------------------------------------------------------------------


def base() -> str:
    if named := os.environ.get("REALCLI_BASE"):
        return named
    mode = CACHE / "node-mode"
    if mode.exists() and mode.read_text() == "official":
        return "debian:bookworm-slim"
    recipe = hashlib.sha256(" ".join(["bookworm", "lean", *BASE_PACKAGES]).encode()).hexdigest()[:12]
    ref = f"{REPOSITORY}/base:bookworm-{recipe}"
    if not succeeds("docker", "image", "inspect", ref):
        begin = time.monotonic()
        archive = CACHE / f"base-{os.getpid()}.tar"
        lean = [f"--dpkgopt=path-exclude=/usr/share/{unused}/*" for unused in ("doc", "man", "locale", "info")]
        packages = "--include=" + ",".join(BASE_PACKAGES)
        try:
            run("mmdebstrap", "--quiet", "--variant=minbase", *lean, packages, "bookworm", archive)
            run("docker", "import", archive, ref)
        finally:
            archive.unlink(missing_ok=True)
        say(f"built {ref}: {time.monotonic() - begin:.0f} s")
    return ref


# -- the project's own images --------------------------------------------------------------------------------------

PLATFORM = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28")


def python(extra: str, on: str) -> Image:
    """The base with the pinned packages of an extra, which are installed into the cache first."""
    constraints = ROOT / "constraints.txt"
    wanted = json.dumps({k: PROJECT["project"][k] for k in ("dependencies", "optional-dependencies")})
    digest = hashlib.sha256(f"{extra} {wanted}".encode() + constraints.read_bytes()).hexdigest()[:12]
    folder = CACHE / "site" / f"{extra}-{digest}"

    def prepare(context: Path) -> None:
        if not folder.exists():
            pinned = run(
                "uv", "pip", "compile", "-q", ROOT / "pyproject.toml", "--extra", extra, "-c", constraints, "--generate-hashes",
                "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", *PLATFORM, cwd=CACHE,
            )  # fmt: skip
            partial = fresh_folder(folder.with_name(f"partial-{folder.name}"))
            run(
                "uv", "pip", "install", "-q", "--require-hashes", "--only-binary", ":all:", "--target", partial, *PLATFORM,
                "-r", "-", stdin=pinned,
            )  # fmt: skip
            partial.rename(folder)
        shutil.copytree(folder, context / "deps", copy_function=os.link, symlinks=True)

    return Image(f"python-{extra}", ROOT / "hack/images/python.Dockerfile", [], {"BASE": on}, [digest], prepare)


def program(name: str, folder: str, on: str) -> Image:
    """An image that holds an extra's packages and the project's wheel."""
    sources = [Put(p, ROOT / p) for p in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE")]
    digest = content([f for put in sources for f in put.files()])
    app = CACHE / "app" / digest

    def prepare(context: Path) -> None:
        if not app.exists():
            shutil.rmtree(app.parent, ignore_errors=True)  # only the newest is of use
            work = fresh_folder(CACHE / "context/wheel")
            for at, path in (f for put in sources for f in put.files()):
                link_or_copy(path, work / "source" / at)
            run("uv", "build", "-q", "--wheel", "--out-dir", work / "dist", work / "source")
            wheel = next((work / "dist").glob("*.whl"))
            run("uv", "pip", "install", "-q", "--no-deps", "--target", work / "app", *PLATFORM, wheel)
            app.parent.mkdir(parents=True)
            (work / "app").rename(app)
            shutil.rmtree(work)
        shutil.copytree(app, context / "app", copy_function=os.link)

    return Image(name, ROOT / folder / "Dockerfile", [], {"PYTHON": python(name, on).ensure()}, [digest], prepare)


def session(on: str) -> Image:
    """The session holds the words of Terminus-2 besides, out of the pinned harbor wheel."""
    image = program("session", "simulator_image", on)
    prepare_program = image.prepare

    def prepare(context: Path) -> None:
        assert prepare_program is not None
        prepare_program(context)
        terminus_templates.unpack(context / "terminus-2")

    words = content([(p.name, p) for p in (Path(terminus_templates.__file__), terminus_templates.REQUIREMENTS)])
    return replace(image, facts=[*image.facts, words], prepare=prepare)


def toolkit(on: str) -> Image:
    here = ROOT / "runner_image"
    runner = [
        Put("runner/realcli/__init__.py", ROOT / "realcli/__init__.py"),
        Put("runner/realcli/wire", ROOT / "realcli/wire"),
        Put("runner/realcli_runner", here / "realcli_runner"),
        *([Put("runner/start.py", here / "start.py")] if (here / "start.py").exists() else []),
    ]
    return Image("toolkit", here / "Dockerfile", [Put("build-toolkit.sh", here / "build-toolkit.sh"), *runner], {"BASE": on})


# -- agents --------------------------------------------------------------------------------------------------------

AGENTS = ROOT / "runner_image/agents"
# program -> the npm package that holds its platform build, and (path in the package, name in the image) of what is taken
NPM_PROGRAMS = {
    "claude-code": ("@anthropic-ai/claude-code-linux-x64", "claude", "claude"),
    "codex": ("@openai/codex-linux-x64", "vendor/x86_64-unknown-linux-musl", "codex"),
}


def npm_folder(program: str) -> Path:
    """The installed npm package of a program, in the cache; its lock file decides the content."""
    here = AGENTS / program
    lock = here / "package-lock.json"
    folder = CACHE / "npm" / f"{program}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        partial = fresh_folder(folder.with_name(f"partial-{folder.name}"))
        for name in ("package.json", "package-lock.json", ".npmrc"):
            if (here / name).exists():
                shutil.copy2(here / name, partial / name)
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=partial)
        partial.rename(folder)
    return folder


def agent_version(program: str) -> str:
    """As the sweep names it: the pinned version without the name of the platform."""
    package, _, _ = NPM_PROGRAMS[program]
    entry = json.loads((AGENTS / program / "package-lock.json").read_text())["packages"][f"node_modules/{package}"]
    return str(entry["version"]).partition("-")[0]


def npm_agent(program: str, toolkit_ref: str) -> Image:
    package, source, name = NPM_PROGRAMS[program]

    def prepare(context: Path) -> None:
        taken = npm_folder(program) / "node_modules" / package / source
        if taken.is_dir():
            shutil.copytree(taken, context / name, copy_function=os.link, symlinks=True)
        else:
            os.link(taken, context / name)
            (context / name).chmod(0o755)

    lock = (AGENTS / program / "package-lock.json").read_text()
    return Image(f"agent-{program}", AGENTS / program / "Dockerfile", [], {"TOOLKIT": toolkit_ref}, [lock], prepare)


TERMINUS_VERSION = "0.26.0"  # harbor's: the loop is the session's own, in the container it needs tmux alone


# -- beside the product --------------------------------------------------------------------------------------------


def seaweedfs() -> Image:
    stamp = CACHE / "stamps/weed"
    if not stamp.exists():
        sys.exit("images.py: SeaweedFS is not built; run: hack/cluster/build-binaries weed")

    def prepare(context: Path) -> None:
        os.link(CACHE / "bin/weed", context / "weed")

    return Image("seaweedfs", ROOT / "hack/images/seaweedfs.Dockerfile", [], {}, [stamp.read_text()], prepare)


def provider(session_ref: str) -> Image:
    return Image("provider", ROOT / "hack/images/provider.Dockerfile", [], {"SESSION": session_ref})


def empty() -> Image:
    """An image with nothing in it but one file: what the toolkit must be able to start in (a test)."""
    dockerfile = ROOT / "hack/images/empty.Dockerfile"
    return Image("empty", dockerfile, [Put("empty.Dockerfile", dockerfile)])


def tasks(on: str) -> Iterator[Image]:
    """Every task's own image, under the name that its task.toml gives."""
    for declared in sorted(ROOT.glob("benchmark/*/tasks/*/task.toml")):
        dockerfile = declared.parent / "environment/Dockerfile"
        if not dockerfile.exists():
            continue
        named = tomllib.loads(declared.read_text()).get("environment", {}).get("docker_image")
        if not named:
            sys.exit(f"images.py: {declared}: [environment] docker_image is missing; name the image that tasks run in")
        suite = declared.parts[-4]
        context = [Put(".", dockerfile.parent)]
        yield Image(f"task-{suite}-{declared.parent.name}", dockerfile, context, {"BASE": on}, also=named)


# -- the node ------------------------------------------------------------------------------------------------------


def load(images: list[tuple[str, str | None]]) -> None:
    """Brings the (tag, fixed name) pairs that the node lacks into its containerd, in one stream."""
    if not succeeds("docker", "exec", NODE, "ctr", "version"):
        sys.exit("images.py: the kind node does not run; start it with: make cluster")
    ctr = ("docker", "exec", NODE, "ctr", "-n", "k8s.io", "images")
    there = set(run(*ctr, "ls", "-q").split())
    missing = [ref for ref, _ in images if ref not in there]
    if missing:
        begin = time.monotonic()
        save = subprocess.Popen(["docker", "save", *missing], stdout=subprocess.PIPE)
        put = ["docker", "exec", "-i", NODE, "ctr", "-n", "k8s.io", "images", "import", "--digests", "-"]
        done = subprocess.run(put, stdin=save.stdout, capture_output=True, text=True)
        if save.wait() != 0 or done.returncode != 0:
            sys.exit(f"images.py: loading {', '.join(missing)} into the node failed:\n{done.stderr[-2000:]}")
        say(f"loaded {len(missing)} images into the node: {time.monotonic() - begin:.0f} s")
    for ref, fixed in images:
        if fixed and (ref in missing or fixed not in there):
            run(*ctr, "tag", "--force", ref, fixed)


def prune(images: list[str]) -> None:
    """Drops superseded tags of our images from the engine and the node; the newest few stay for other clones."""
    listed = [line.split() for line in run("docker", "images", "--format", "{{.Repository}} {{.Tag}}").splitlines()]
    old: list[str] = []
    for repository in {ref.rpartition(":")[0] for ref in images}:
        tags = [tag for name, tag in listed if name == repository and tag.startswith(f"{VERSION}-")]  # newest first
        old += [f"{repository}:{tag}" for tag in tags[KEPT_TAGS:] if f"{repository}:{tag}" not in images]
    if old:
        subprocess.run(["docker", "rmi", *old], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ctr = ["docker", "exec", NODE, "ctr", "-n", "k8s.io", "images", "rm", *old]
        subprocess.run(ctr, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# -- all together --------------------------------------------------------------------------------------------------

NAMES = [
    "operator", "session", "judge", "toolkit", "agent-claude-code", "agent-codex", "seaweedfs", "provider", "empty", "tasks",
]  # fmt: skip


def build(wanted: set[str]) -> dict[str, str | dict[str, str]]:
    """Builds what is wanted and what it stands on; returns name -> tag (tasks: fixed name -> tag)."""
    on = base()
    refs: dict[str, str | dict[str, str]] = {"base": on}

    def one(name: str, make: Callable[[], Image]) -> str:
        if name not in refs:
            refs[name] = make().ensure()
        return str(refs[name])

    session_ref = lambda: one("session", lambda: session(on))  # noqa: E731
    tools = lambda: one("toolkit", lambda: toolkit(on))  # noqa: E731
    makers: dict[str, Callable[[], object]] = {
        "operator": lambda: one("operator", lambda: program("operator", "operator", on)),
        "session": session_ref,
        "judge": lambda: one("judge", lambda: program("judge", "judge_image", on)),
        "toolkit": tools,
        "agent-claude-code": lambda: one("agent-claude-code", lambda: npm_agent("claude-code", tools())),
        "agent-codex": lambda: one("agent-codex", lambda: npm_agent("codex", tools())),
        "seaweedfs": lambda: one("seaweedfs", seaweedfs),
        "provider": lambda: one("provider", lambda: provider(session_ref())),
        "empty": lambda: one("empty", empty),
        "tasks": lambda: refs.update(tasks={str(i.also): i.ensure() for i in tasks(on)}),
    }
    for name in NAMES:
        if name in wanted:
            makers[name]()
    return refs


def chart_values(refs: dict[str, str | dict[str, str]]) -> dict[str, object]:
    images = {name: refs[name] for name in ("operator", "session", "judge", "toolkit") if name in refs}
    agents = {name: {agent_version(name): refs[f"agent-{name}"]} for name in NPM_PROGRAMS if f"agent-{name}" in refs}
    if "toolkit" in refs:
        agents["terminus-2"] = {TERMINUS_VERSION: refs["toolkit"]}
    return {"images": images | {"pullPolicy": "IfNotPresent", "agents": agents}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", action="store_true", help="bring what the kind node lacks into it")
    parser.add_argument("--only", nargs="+", choices=["base", *NAMES], help="these images and what they stand on")
    options = parser.parse_args()

    CACHE.mkdir(parents=True, exist_ok=True)
    lock = (CACHE / "images.lock").open("w")  # held until the process ends: clones share the cache
    fcntl.flock(lock, fcntl.LOCK_EX)
    refs = build(set(options.only or NAMES))
    if options.load:
        fixed = refs.get("tasks")
        pairs: list[tuple[str, str | None]] = [(r, None) for n, r in refs.items() if isinstance(r, str) and n != "base"]
        pairs += [(ref, name) for name, ref in fixed.items()] if isinstance(fixed, dict) else []
        load(pairs)
        prune([ref for ref, _ in pairs])
    if options.only is None:
        OUT.mkdir(exist_ok=True)
        (OUT / "images.json").write_text(json.dumps(refs, indent=2) + "\n")
        (OUT / "values.images.json").write_text(json.dumps(chart_values(refs), indent=2) + "\n")
    print(json.dumps(refs, indent=2))


if __name__ == "__main__":
    main()
