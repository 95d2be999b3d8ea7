"""Snapshots of loaded data, and slots (a directory and ports) that servers use in rotation."""
