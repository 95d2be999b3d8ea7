"""The experiment: reads a TOML file, validates it, and derives the ordered list of trials.

Uses no process, driver or clock.
"""
