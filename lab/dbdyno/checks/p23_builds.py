"""P23: the servers that are compared should be built in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dbdyno.checks.check import Check, Context, Moment
from dbdyno.finding import Finding
from dbdyno.servers.server import Description
from dbdyno.text import compose, join, mark

# Options of a C compiler that change the speed of a program.
_SPEED_OPTION = re.compile(
    r"-(?:O\S*|m(?:arch|tune)=\S+|flto\S*|f(?:no-)?omit-frame-pointer|fprofile-use\S*)"
)
# Options of PostgreSQL's configure that do.
_SLOW_CONFIGURE = ("--enable-cassert", "--enable-coverage", "--enable-profiling", "--disable-spinlocks")


def find(moment: Moment, context: Context) -> Iterator[Finding]:
    """Finds servers of one product that were built with other compilers, options or libraries.

    Catches a build that is taken for a version: "18 is faster than 14" may only say that one was compiled
    with -O2 and the other with -Os.

    Rule: the compiler, those of its options that change speed, and the libraries that the server names must
    be the same as those of the variants of this product that started before; otherwise the finding is a
    warning. A server that does not say how it was built is not compared.
    """
    assert moment is Moment.READY, "P23 is registered for READY only"
    description = context.description
    if description is None or context.first_description is not None:
        return
    mine = speed_facts(description)
    for name, peer in context.peers.items():
        if name == context.subject or peer.product != description.product:
            continue
        other = speed_facts(peer)
        different = [key for key in mine if key in other and mine[key] != other[key]]
        if not different:
            continue
        details = join(
            "; ",
            (
                compose(
                    "{key} is {mine} and {other}",
                    key=key.replace("_", " "),
                    mine=repr(mine[key]),
                    other=repr(other[key]),
                )
                for key in different
            ),
        )
        yield Finding(
            "P23",
            "warn",
            compose(
                "the servers of {subject} and {name} were built differently: {details}. A difference "
                "between them may be one of the builds",
                subject=context.subject,
                name=name,
                details=details,
            ),
            {key: {context.subject: mine[key], name: other[key]} for key in different},
            context.subject,
            fix=compose("Compare versions from one source, as dbdyno servers install provides them"),
        )


def speed_facts(description: Description) -> Mapping[str, str]:
    """What the server says about its build that may change its speed, by name."""
    build = dict(description.build)
    facts = {}
    if "CFLAGS" in build:
        facts["compiler options"] = " ".join(_SPEED_OPTION.findall(build.pop("CFLAGS")))
    if "CONFIGURE" in build:
        configure = build.pop("CONFIGURE")
        facts["configure options"] = " ".join(one for one in _SLOW_CONFIGURE if one in configure)
    # Libraries change with the versions of a server; their names are enough.
    return {
        name: re.sub(r"[\s-]*\d+(\.\d+)+\w*.*", "", text) if name == "ssl_library" else text
        for name, text in build.items()
    } | facts


CHECK = Check(
    "P23",
    "Servers are built in the same way",
    frozenset({Moment.READY}),
    find,
    caveat=mark("the servers were built differently"),
)
