"""Runs one trial from several engines at once, each with its share of the load, on one host or many.

::

    fleet_engine.py   an `Engine` that runs a plan on all engines: the interface to the rest of the lab; sends
                      the files that a plan names to hosts that do not have them
    streams.py        reads the records of all engines, and notices one that is lost
    carrier.py        the interface of what places engines on hosts and calls them, and measures their clocks
    carriers.py       processes of this machine, and the choice of a carrier by `fleet.address`
    ray_carrier.py    hosts of a Ray cluster; the only module that imports Ray
    engine_host.py    what runs on a host: starts one engine, keeps its output, stops it
    cluster.py        starts and stops the Ray processes of this machine
    doctor.py         what every host has, and what does not fit together
"""
