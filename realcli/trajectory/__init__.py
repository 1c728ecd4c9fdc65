"""From events to exchanges, windows, order in turns and a conversation a person can read. Pure."""

from realcli.trajectory.conversation import Entry, Section, conversation
from realcli.trajectory.model import Exchange, Item, Trajectory, TrajectoryError, Window

__all__ = ["Entry", "Exchange", "Item", "Section", "Trajectory", "TrajectoryError", "Window", "conversation"]
