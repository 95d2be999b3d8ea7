"""Why variants differ: what server, processes and machine spent on one transaction. Pure; reads stored
records.
"""
