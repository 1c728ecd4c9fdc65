"""A model provider with a script instead of a model: the real Anthropic wire, an agent's work that can be predicted."""
