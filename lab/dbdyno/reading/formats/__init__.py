"""The formats of results: one file for each tool's output, and one for tables."""
