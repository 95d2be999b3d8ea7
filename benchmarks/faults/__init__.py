"""Injects faults into real comparisons, and records what the user sees and what is lost."""
