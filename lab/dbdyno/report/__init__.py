"""The report: a judged run becomes one HTML file and its charts. Reads the store and nothing else."""
