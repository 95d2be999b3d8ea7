"""`dbdyno ui`: stored runs, a run in progress, two runs side by side, and an editor, in a browser.

It reads the store and nothing else. Checks, comparisons of runs and experiments are the commands of dbdyno,
which run as processes of their own. Only app.py imports NiceGUI (extra `ui`).
"""
