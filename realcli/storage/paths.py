"""Where things lie in storage: the one place that knows the layout (architecture.md, 4). Keys never start with "/"."""

from __future__ import annotations

from typing import NamedTuple


def join(*parts: str) -> str:
    """Parts joined by one "/", empty parts left out."""
    return "/".join(part.strip("/") for part in parts if part.strip("/"))


def sweep_root(prefix: str, namespace: str, sweep: str, uid: str) -> str:
    """`<prefix>/sweeps/<namespace>/<sweep>-<uid8>`."""
    return join(prefix, "sweeps", namespace, f"{sweep}-{uid.replace('-', '')[:8]}")


def calibration(prefix: str, judge_digest8: str) -> str:
    """The last word on a judge: `<prefix>/calibrations/<judge digest8>/gate.json`, beside benchmarks/ and sweeps/."""
    return join(prefix, "calibrations", judge_digest8, "gate.json")


class SweepPaths(NamedTuple):
    """Keys below a sweep's root."""

    root: str

    @property
    def lock(self) -> str:
        """sweep.json."""
        return join(self.root, "sweep.json")

    def setup(self, digest: str) -> str:
        """The pinned files of a team's own set-up; `digest` is the archive's sha256:<hex>."""
        return join(self.root, "setups", f"{digest.removeprefix('sha256:')}.tar.zst")

    def attempt(self, ordinal: int, attempt: int) -> AttemptPaths:
        """One attempt of one trial."""
        return AttemptPaths(join(self.root, "trials", f"{ordinal:05d}", f"attempt-{attempt}"))

    def source(self, ordinal: int) -> str:
        """source.json of a trial whose run another sweep has made (`spec.from`)."""
        return join(self.root, "trials", f"{ordinal:05d}", "source.json")

    def judgements(self, judge_digest8: str, configuration: str, task: str) -> str:
        """Folder of a group's judgements."""
        return join(self.root, "judgements", judge_digest8, configuration, task)

    def group(self, judge_digest8: str, configuration: str, task: str, n: int = 1) -> str:
        """group-<n>.json."""
        return join(self.judgements(judge_digest8, configuration, task), f"group-{n}.json")

    def withdrawn(self, judge_digest8: str, digest8: str) -> str:
        """withdrawn-<digest8>.json: the tasks that a report leaves out."""
        return join(self.root, "judgements", judge_digest8, f"withdrawn-{digest8}.json")

    def repeat(self, judge_digest8: str, configuration: str, task: str, repeat: int, seal8: str) -> str:
        """repeat-<r>-<seal8>.json."""
        return join(self.judgements(judge_digest8, configuration, task), f"repeat-{repeat}-{seal8}.json")

    def audit(self, judge_digest8: str, configuration: str, task: str, repeat: int, seal8: str) -> str:
        """repeat-<r>-<seal8>.audit.json."""
        return join(self.judgements(judge_digest8, configuration, task), f"repeat-{repeat}-{seal8}.audit.json")

    def failures(self, judge_digest8: str, configuration: str, task: str, n: int = 1) -> str:
        """failures-<n>.json."""
        return join(self.judgements(judge_digest8, configuration, task), f"failures-{n}.json")

    def judge_exchange(self, judge_digest8: str, configuration: str, task: str, key: str) -> str:
        """A request to the judge and its reply, by the request's key."""
        return join(self.judgements(judge_digest8, configuration, task), "exchanges", f"{key}.json")

    def labels(self, judge_digest8: str, labels_digest8: str) -> str:
        """What a person said of a judge's verdicts; a version of its own, by its own digest."""
        return join(self.root, "labels", judge_digest8, f"labels-{labels_digest8}.json")

    def report(self, input_digest8: str) -> str:
        """Folder of a report."""
        return join(self.root, "reports", input_digest8)


class AttemptPaths(NamedTuple):
    """Keys below one attempt. Everything here is covered by a seal."""

    root: str

    def segment(self, number: int) -> str:
        """Ledger segment, from 1."""
        return join(self.root, "ledger", f"{number:06d}.jsonl")

    @property
    def ledger(self) -> str:
        """Folder of the ledger's segments."""
        return join(self.root, "ledger")

    def blob(self, hex64: str) -> str:
        """A blob by its sha256."""
        return join(self.root, "blobs", hex64)

    def snapshot(self, seq: int) -> str:
        """Snapshot taken at ledger event `seq`."""
        return join(self.root, "snapshots", f"{seq}.tar.zst")

    @property
    def run(self) -> str:
        """run.json."""
        return join(self.root, "run.json")

    @property
    def state(self) -> str:
        """state.tar.zst."""
        return join(self.root, "state.tar.zst")

    @property
    def work_seal(self) -> str:
        """work-seal.json."""
        return join(self.root, "work-seal.json")

    @property
    def following(self) -> str:
        """Folder of the marks of those who follow this attempt live (realcli.ledger.follow): beside `trials`, under no seal."""
        sweep, _, trial = self.root.rpartition("trials/")
        return join(sweep, "following", trial)

    def verify(self, number: int) -> VerifyPaths:
        """Verify pod `number`, from 1."""
        return VerifyPaths(join(self.root, f"verify-{number}"))

    def control(self, number: int) -> ControlPaths:
        """Control pod `number`, from 1."""
        return ControlPaths(join(self.root, f"control-{number}"))


class ControlPaths(NamedTuple):
    """Keys of one control."""

    root: str

    @property
    def run(self) -> str:
        """run.json: its own, the attempt's is the agent's."""
        return join(self.root, "run.json")

    @property
    def verdict(self) -> str:
        """verdict.json."""
        return join(self.root, "verdict.json")

    @property
    def logs(self) -> str:
        """logs.txt: what the solution and the tests printed."""
        return join(self.root, "logs.txt")

    @property
    def ctrf(self) -> str:
        """ctrf.json: the tests' own summary, where they left one."""
        return join(self.root, "ctrf.json")

    @property
    def seal(self) -> str:
        """seal.json."""
        return join(self.root, "seal.json")


class VerifyPaths(NamedTuple):
    """Keys of one verify."""

    root: str

    @property
    def verdict(self) -> str:
        """verdict.json."""
        return join(self.root, "verdict.json")

    @property
    def ctrf(self) -> str:
        """ctrf.json: the tests' own summary, where they left one."""
        return join(self.root, "ctrf.json")

    @property
    def logs(self) -> str:
        """logs.txt: what the tests printed."""
        return join(self.root, "logs.txt")

    @property
    def checks(self) -> str:
        """checks.jsonl: what the task's checker scripts found on snapshots."""
        return join(self.root, "checks.jsonl")

    @property
    def seal(self) -> str:
        """seal.json."""
        return join(self.root, "seal.json")


def parse_s3_uri(uri: str) -> tuple[str, str]:
    """(bucket, key) of s3://bucket/key; ValueError names the text."""
    scheme, separator, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not separator or not bucket:
        raise ValueError(f"{uri!r} is not an S3 address; expected s3://bucket/path")
    return bucket, key.strip("/")
