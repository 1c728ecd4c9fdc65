"""Who words what the state machine decided to say: nobody (`Canonical`) or a model under guards (`Model`)."""

from realcli_session.user.wording.model import Model
from realcli_session.user.wording.port import Canonical, SimulatorFailed, Worded, WordingPort

__all__ = ["Canonical", "Model", "SimulatorFailed", "Worded", "WordingPort"]
