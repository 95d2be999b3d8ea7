"""What the commands do, one file each; `dbdyno.cli` declares them. They are imported only when called, and
they alone print.
"""
