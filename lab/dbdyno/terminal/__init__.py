"""What all commands need to print: streams, messages, tables of text, a comparison's progress and result."""
