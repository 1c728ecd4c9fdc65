"""The verify pod's session: a pure function of image, state, run.json, tests and verifier version."""
