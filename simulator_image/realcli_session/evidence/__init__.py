"""What the session can prove of the agent's deeds: files shown to the model, files changed between requests."""
