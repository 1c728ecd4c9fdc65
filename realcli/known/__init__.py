"""Known answers: small ledgers with verdicts known by construction, emulated judges, the arithmetic of calibration. Pure."""
