"""dbdyno's lab: designs experiments, runs servers, judges, explains, shows."""

__version__ = "0.1.0"
