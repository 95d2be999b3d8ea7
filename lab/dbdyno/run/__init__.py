"""Runs experiments: engine processes, trials, groups and whole comparisons. Prints nothing."""
