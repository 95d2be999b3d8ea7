"""Statistical methods as pure functions: estimators, intervals, tests, verdicts, histograms, steady state.

docs/statistics.md describes the methods.
"""
