"""The tables once; what differs per database beside them.

tables      the tables, their keys and foreign keys
contract    what a database has to offer; one plug-in per kind of database
marker      what is loaded, and whether completely
load        bulk load, constraints, checks
reset       what a run changes, back to how it was; downtimes moved to the run's start
"""
