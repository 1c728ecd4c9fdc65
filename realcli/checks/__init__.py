"""Hard-check operators, pure: ledger and snapshots to pass, fail, undecided."""
