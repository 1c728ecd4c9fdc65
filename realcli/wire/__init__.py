"""Frames between session and runner; standard library only."""
