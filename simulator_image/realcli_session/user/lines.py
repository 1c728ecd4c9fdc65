"""Fixed sentences of the simulated user. They say nothing of any task and prefer nothing."""

NEUTRAL = "I have nothing to add to what I have told you. Please go by that."
"""To a question for information that the script has no answer to."""
REFUSAL = "No, leave that as it is."
"""To a question for leave that the script does not give."""
LATER = "I will come to that."
"""To a question whose answer comes with a probe."""
NEUTRAL_ANSWERS = 3
"""How often a question is answered although nothing is left to say; the next is taken for the claim it stands for."""
DISPLACED = 2
"""How many answers in a row a due probe can be put off by."""
