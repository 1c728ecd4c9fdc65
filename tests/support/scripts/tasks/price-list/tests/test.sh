#!/bin/bash
# Exit status is of no account; the reward is in /logs/verifier.
python3 -I -B /tests/check.py
