"""Feeds mutated files to dbdyno's readers: experiment files, stored runs, and plans of the engine."""
