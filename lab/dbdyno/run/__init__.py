"""Conducting an experiment: engine processes, trials, groups, whole comparisons. Prints nothing."""
