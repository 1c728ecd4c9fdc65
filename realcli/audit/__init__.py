"""Part B: did the simulated user keep to its script? Judged blind to Part A and to the reward. Program parts are pure."""
