"""From verdicts to R, S and J: exact, pure, and never a 0 for something that is not known."""
