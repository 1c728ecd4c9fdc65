"""The work pod's session: setup, work, quiesce, seal."""
