"""The experiment: from a TOML file to checked models to an ordered list of trials.

Pure: no process, no driver, no clock.
"""
