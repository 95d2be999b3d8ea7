"""The live view of a run in a terminal (`dbdyno watch`). It reads the store and nothing else."""
