"""What the chart tells the operator by environment. A wrong value ends the process with the variable's name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Final, TypeVar

from realcli.api.plan import Images
from realcli_operator.faults import FaultPoint
from realcli_operator.reconcile.confirming import ConfirmAbove

PREFIX: Final = "REALCLI_"
T = TypeVar("T")


class SettingsError(ValueError):
    """A variable is missing or wrong; the message names it, what was expected and what was found."""


class Use(StrEnum):
    """Whether to use a feature of the cluster. Auto: if a dry run keeps the field."""

    AUTO = "Auto"
    ALWAYS = "Always"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the process can be told."""

    images: Images
    pull_policy: str = "IfNotPresent"
    image_volumes: Use = Use.AUTO
    user_namespaces: Use = Use.AUTO
    namespaces: tuple[str, ...] = ()
    cluster_domain: str = "cluster.local"
    writes_per_second: float = 50.0
    workers: int = 32
    judges: int = 4
    confirm_above: ConfirmAbove = field(default_factory=ConfirmAbove)
    keep_failed_pods: bool = False
    liveness: str | None = "http://0.0.0.0:8080/healthz"
    metrics_port: int = 9090  # 0: not served
    kubeconfig: Path | None = None
    log_level: str = "INFO"
    version: str = field(default_factory=lambda: metadata.version("realcli"))
    fault: FaultPoint | None = None
    fault_write: int | None = None

    @staticmethod
    def from_environment(environ: Mapping[str, str] = os.environ) -> Settings:
        """Read all variables; `SettingsError`."""
        given = _Reader(environ)
        images = Images(
            session=given.text("IMAGE_SESSION"),
            judge=given.text("IMAGE_JUDGE"),
            toolkit=given.text("IMAGE_TOOLKIT"),
            agents=given.parsed("AGENT_IMAGES", _agents, 'JSON such as {"claude-code": {"2.1.140": "image"}}'),
        )
        kubeconfig = environ.get(f"{PREFIX}KUBECONFIG")
        return Settings(
            images=images,
            pull_policy=given.choice("IMAGE_PULL_POLICY", ("Always", "IfNotPresent", "Never"), "IfNotPresent"),
            image_volumes=Use(given.choice("IMAGE_VOLUMES", tuple(Use), Use.AUTO)),
            user_namespaces=Use(given.choice("USER_NAMESPACES", tuple(Use), Use.AUTO)),
            namespaces=tuple(part.strip() for part in environ.get(f"{PREFIX}WATCH_NAMESPACES", "").split(",") if part.strip()),
            cluster_domain=environ.get(f"{PREFIX}CLUSTER_DOMAIN") or "cluster.local",
            writes_per_second=given.parsed("WRITES_PER_SECOND", _positive, "a number greater than 0", "50"),
            workers=int(given.parsed("WORKERS", _positive, "a whole number greater than 0", "32")),
            confirm_above=ConfirmAbove(
                usd=given.optional("CONFIRM_ABOVE_USD", _amount, "US dollars, a decimal such as 500"),
                pod_hours=given.optional("CONFIRM_ABOVE_POD_HOURS", _amount, "hours, a decimal such as 2000"),
            ),
            judges=given.parsed("JUDGES", _count, "a whole number from 1", "4"),
            keep_failed_pods=given.choice("KEEP_FAILED_PODS", ("true", "false"), "false") == "true",
            liveness=environ.get(f"{PREFIX}LIVENESS", "http://0.0.0.0:8080/healthz") or None,
            metrics_port=given.parsed("METRICS_PORT", _port, "a port, or 0 to serve no metrics", "9090"),
            kubeconfig=Path(kubeconfig) if kubeconfig else None,
            log_level=given.choice("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO"),
            fault=_fault(given, environ),
            fault_write=_fault_write(given, environ),
        )


class _Reader:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def text(self, name: str) -> str:
        value = self._environ.get(PREFIX + name)
        if not value:
            raise SettingsError(f"{PREFIX}{name} is not set; the chart sets it from its values")
        return value

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self._environ.get(PREFIX + name) or default
        if value not in allowed:
            raise SettingsError(f"{PREFIX}{name} is {value!r}; expected one of {', '.join(allowed)}")
        return value

    def parsed(self, name: str, parse: Callable[[str], T], expected: str, default: str | None = None) -> T:
        value = self._environ.get(PREFIX + name) or default
        if value is None:
            raise SettingsError(f"{PREFIX}{name} is not set; expected {expected}")
        try:
            return parse(value)
        except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise SettingsError(f"{PREFIX}{name} is {value!r}; expected {expected}: {error}") from error

    def optional(self, name: str, parse: Callable[[str], T], expected: str) -> T | None:
        return self.parsed(name, parse, expected) if self._environ.get(PREFIX + name) else None


def _amount(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite() or value < 0:
        raise ValueError("not an amount")
    return value


def _agents(text: str) -> dict[str, str]:
    """{"program": {"version": image}} → {"program/version": image}."""
    result = {}
    for program, versions in json.loads(text).items():
        for version, image in versions.items():
            if not isinstance(image, str) or not image:
                raise ValueError(f"{program}/{version} names no image")
            result[f"{program}/{version}"] = image
    return result


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError("out of range")
    return value


def _fault(given: _Reader, environ: Mapping[str, str]) -> FaultPoint | None:
    if environ.get(f"{PREFIX}ALLOW_FAULTS") != "1" or not environ.get(f"{PREFIX}FAULT_POINT"):
        return None
    return FaultPoint(given.choice("FAULT_POINT", tuple(FaultPoint), ""))


def _fault_write(given: _Reader, environ: Mapping[str, str]) -> int | None:
    if environ.get(f"{PREFIX}ALLOW_FAULTS") != "1" or not environ.get(f"{PREFIX}FAULT_WRITE"):
        return None
    return int(given.parsed("FAULT_WRITE", _positive, "a whole number greater than 0"))
