"""Finds the programs of a server."""
