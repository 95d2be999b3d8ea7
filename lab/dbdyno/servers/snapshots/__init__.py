"""Loaded data at rest, and the directories that servers take turns in."""
