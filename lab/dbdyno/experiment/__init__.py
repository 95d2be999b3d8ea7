"""Reads the experiment file (TOML), validates it, and computes the list of trials in running order.

This package uses no process, driver or clock.
"""
