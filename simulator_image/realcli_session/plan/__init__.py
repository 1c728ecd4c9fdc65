"""The plan Job: what a sweep runs, decided once, with everything checked that can be checked before a trial starts."""
