"""Judging what no program decides: requests to a model, its answers, and the rules they have to meet. Pure."""
