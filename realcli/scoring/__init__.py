"""Verdicts to R, S, J and avg@3, by exact fractions."""
