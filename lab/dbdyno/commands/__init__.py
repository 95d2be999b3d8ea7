"""The commands, one file each. They are imported only when called, and they alone print."""
