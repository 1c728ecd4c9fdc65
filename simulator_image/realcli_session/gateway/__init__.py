"""The model gateway: the agent's only way to a model, and the ground truth of what was asked and answered."""
