"""Snapshots of loaded data, and slots (directory and ports) that servers use in rotation."""
