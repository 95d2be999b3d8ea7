"""Runs a load for hours and measures whether memory, file handles and threads of dbdyno grow."""
