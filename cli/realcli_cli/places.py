"""Turns what a person names (a Trial, a sweep, a directory, an s3:// address) into a store and a key."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from realcli.scoring.sources import Source
from realcli.storage import ObjectStore, StorageConfig
from realcli.storage.opening import open_store
from realcli_cli.main import UserError

_ATTEMPT = re.compile(r"/(?P<sweep>[^/]+)-[0-9a-f]{8}/trials/(?P<ordinal>[0-9]{5})/attempt-[0-9]+$")


_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LOG = re.compile(r"[EWIF][0-9]{4} [0-9:.]+ ")  # how a line of its log begins


class Place(NamedTuple):
    """Where to look."""

    store: ObjectStore
    key: str
    shown: str
    anchor: str | None = None  # digest of the work seal, where an object in the cluster told it
    verdict_anchor: str | None = None  # digest of the verify seal, likewise


def place_of_uri(uri: str, endpoint: str | None) -> Place:
    """s3://…, file://… or a directory."""
    if "://" not in uri and not Path(uri).is_dir():
        raise UserError(
            f"{uri} is not a directory; expected a directory, s3://bucket/path or the name of an object in the cluster"
        )
    try:
        config, key = StorageConfig.of_uri(uri, endpoint)
        store = open_store(config)
    except ValueError as error:
        raise UserError(f"{uri}: {error}") from error
    return Place(store, key, uri)


def place_of_status(trial: str, status: dict[str, Any], endpoint: str | None) -> Place:
    """The attempt that a Trial's status names, with its anchors."""
    uri = status.get("ledgerURI")
    if not uri:
        raise UserError(f"trial {trial} has no ledger yet (phase {status.get('phase', 'Pending')})")
    uri = str(uri).removesuffix("/ledger")  # the attempt: its seal lies beside
    verdict = status.get("sealDigest") if _made_by(trial, uri) else None
    return place_of_uri(uri, endpoint)._replace(shown=uri, anchor=status.get("workSealDigest"), verdict_anchor=verdict)


def _made_by(trial: str, uri: str) -> bool:
    """Whether the run of `<sweep>-<ordinal>` was made by its own sweep. One that was only verified again (`spec.from`) has its
    verify seal in another place than its ledger."""
    found = _ATTEMPT.search(uri)
    return found is None or f"{found['sweep']}-{found['ordinal']}" == trial


def nothing_at(place: Place) -> str:
    """What to say where no ledger lies: of a sweep with `spec.from`, whose runs they are."""
    for item in place.store.list(place.key):
        if item.key.endswith("/source.json"):
            try:
                uri = Source.model_validate_json(place.store.get(item.key)).uri
            except ValueError:
                break
            made = uri.partition("/trials/")[0]
            return f"{place.shown}: no ledger lies here: its runs were made by another sweep, {made}; name that"
    return f"{place.shown}: no ledger lies here"


def kubectl_said(stderr: str) -> str:
    """What kubectl says to people: not the lines of its own log, which repeat the trouble five times."""
    lines = [line for line in stderr.strip().splitlines() if not _LOG.match(line)]
    return " ".join(lines) or "kubectl failed and did not say why"


def is_address(text: str) -> bool:
    """True for a directory or an address, False for the name of an object in the cluster."""
    return "://" in text or "/" in text or Path(text).is_dir()


def object_in_cluster(kind: str, name: str, namespace: str | None) -> dict[str, Any]:
    """`kubectl get KIND NAME -o json`, with the person's own rights and context."""
    if _NAME.fullmatch(name) is None:
        raise UserError(f"{name!r:.200} is neither a directory nor a name that an object in the cluster can have")
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UserError(f"{name} is no directory and kubectl is not installed; give a directory or an s3:// address")
    command = [kubectl, "get", f"{kind}.realcli.dev", name, "-o", "json", *(["-n", namespace] if namespace else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        where = f"namespace {namespace}" if namespace else "the current namespace (-n names another)"
        raise UserError(f"{kind} {name} in {where}: {kubectl_said(done.stderr)}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
