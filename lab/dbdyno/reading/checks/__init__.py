"""The checks of documents: one file per code, whose explanation is in docs/checks.md with those of
experiments.
"""
