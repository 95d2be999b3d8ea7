"""The entry point of `dbdyno` and `python -m dbdyno`. A drop-in is started before any slow import.

The imports at the top of this file delay each start of a drop-in; a test checks their list.
"""

from __future__ import annotations

import sys

from dbdyno.binary import DROP_INS, hand_over
from dbdyno.problem import Problem


def main() -> None:
    """Run the command line and exit with its code."""
    if len(sys.argv) > 1 and sys.argv[1] in DROP_INS:
        try:
            hand_over(sys.argv[1], sys.argv[2:])
        except Problem as problem:
            from dbdyno.terminal.messages import print_problem  # noqa: PLC0415 — only a failure needs it.

            print_problem(problem)
            sys.exit(problem.exit_code)
    from dbdyno import passwords  # noqa: PLC0415 — a drop-in does not need them.
    from dbdyno.terminal.interrupts import handle_interrupts  # noqa: PLC0415

    passwords.protect()

    with handle_interrupts():
        from dbdyno.commands import main as command_line  # noqa: PLC0415 — typer and all commands behind it.

        command_line()


if __name__ == "__main__":
    main()
