"""Outside hosts of a task, served by the session on loopback under their own names (measuring.md 2.2)."""
