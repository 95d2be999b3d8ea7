"""`python -m dbdyno` is `dbdyno`."""

from dbdyno.cli import main

if __name__ == "__main__":
    main()
