"""A trial's folder -> its figures. It judges nothing."""
