"""Finds out what a server can do for a benchmark: `dbdyno probe`."""
