"""Computes what one transaction costs the server (CPU time, I/O, counters), from stored records only."""
