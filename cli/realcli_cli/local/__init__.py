"""Trials without a cluster: the same session and runner programs as in pods, in a container of this machine."""
