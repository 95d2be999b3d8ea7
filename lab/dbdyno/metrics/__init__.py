"""The values of a run in progress for monitoring: reads the store, and serves OpenMetrics text over HTTP."""
