"""The decisions of the operator: pure functions from what is known to what to do. No clock, no I/O."""
