#!/bin/bash
# Exit status is of no account; the reward is in /logs/verifier.
# The program runs as an ordinary user: what the tests expect of it is none of its business.
chmod -R go= /tests && python3 -I -B /tests/check.py
