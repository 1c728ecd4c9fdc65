"""Bounds of a work session that are not the user's to set. One place, so that docs and tests read the same numbers."""

SNAPSHOT_BYTES = 64 << 20
"""Unpacked size of one snapshot of contract paths."""
SNAPSHOT_ENTRIES = 20_000
SNAPSHOTS_BYTES = 1 << 30
"""All snapshots of an attempt, compressed: they lie in the spool until the seal. Beyond it none is taken: undecided."""
STATE_BYTES = 4 << 30
"""Unpacked size of the state; more is StateTooLarge."""
STATE_ENTRIES = 1_000_000
STATE_SECONDS = 900.0
"""Time the state may take to be read; more is StateTooLarge."""
LEDGER_BYTES = 8 << 30
"""Lines and blobs of one trial together; more of any of these three is AgentFloodedOutput. 600 turns of a megabyte: a tenth."""
LEDGER_EVENTS = 2_000_000
LEDGER_BLOBS = 100_000
LEDGER_WAITING = 2 << 30
"""Lines and blobs that wait for storage. At half of it the gateway's requests wait (`Uploader.room`): who goes on floods."""
PLANT_BYTES = 4 << 20
"""Longest file a simulated user edits."""
STOP_GRACE = 5.0
QUIESCE_GRACE = 10.0
QUIESCE_KILL = 30.0
WEDGED_SECONDS = 60.0
"""What a runner gets, beyond the time its task takes by itself, before it counts as wedged."""
WORKER_THREADS = 4
