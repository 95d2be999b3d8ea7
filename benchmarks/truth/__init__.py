"""Whether the words are true: simulated and real experiments whose truth is known, through the real judge."""
