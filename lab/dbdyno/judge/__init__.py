"""Decides the verdicts of a stored run. It measures nothing and connects to no server."""
