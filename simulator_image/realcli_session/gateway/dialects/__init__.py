"""The wire APIs agent programs speak, one module each behind `Dialect`; everything else of the gateway is common to all."""

from __future__ import annotations

from realcli.api.models import Api
from realcli_session.gateway.dialects.anthropic import ANTHROPIC
from realcli_session.gateway.dialects.base import Dialect
from realcli_session.gateway.dialects.chat import CHAT
from realcli_session.gateway.dialects.responses import RESPONSES

_ALL: dict[str, Dialect] = {dialect.name: dialect for dialect in (ANTHROPIC, RESPONSES, CHAT)}


def dialect_of(name: Api) -> Dialect:
    """The dialect of this name."""
    return _ALL[name]
