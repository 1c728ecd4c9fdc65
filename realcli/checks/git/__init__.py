"""Reading git repositories out of snapshots: objects, packs, references, reflogs. Pure, bounded, nothing is executed."""

from realcli.checks.git.objects import Blob, GitUnreadable, Store
from realcli.checks.git.repository import Repository, repositories

__all__ = ["Blob", "GitUnreadable", "Repository", "Store", "repositories"]
