"""Snapshots of loaded data, and the slots that servers exchange."""
