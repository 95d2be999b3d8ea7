"""Pure numerics: estimators, intervals, words, histograms, steady state. No files, no processes, no clock.

docs/statistics.md describes the method on one page.
"""
