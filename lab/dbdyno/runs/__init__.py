"""What looks at several stored runs, and at results of other tools."""
