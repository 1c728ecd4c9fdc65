"""From events to exchanges, windows, order in turns, triggers and a conversation a person can read. Pure.

Simulated user, hard checks, judge and report read a run through this room only.
"""

from realcli.trajectory.conversation import Entry, Section, conversation
from realcli.trajectory.matching import EventPattern, Where, matches
from realcli.trajectory.model import Exchange, Item, Trajectory, TrajectoryError, Window
from realcli.trajectory.patterns import Blobs, NoBlobs
from realcli.trajectory.triggers import TriggerError, TriggerState, When, fired_at, parse_when

__all__ = [
    "Blobs",
    "Entry",
    "EventPattern",
    "Exchange",
    "Item",
    "NoBlobs",
    "Section",
    "Trajectory",
    "TrajectoryError",
    "TriggerError",
    "TriggerState",
    "When",
    "Where",
    "Window",
    "conversation",
    "fired_at",
    "matches",
    "parse_when",
]
