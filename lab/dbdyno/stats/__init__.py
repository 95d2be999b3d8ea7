"""Numerical methods: estimators, intervals, verdict words, histograms, steady state. No files, processes or
clock.

docs/statistics.md describes the methods.
"""
