"""Loaded and empty data directories, and slots (a directory and ports) that servers use in rotation."""
