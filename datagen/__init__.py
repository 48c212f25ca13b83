"""Business data, production times and sensor streams, written to files.

The data set is cut into blocks of fixed size (a district of the business data, some thousand rows
of a sensor stream). Every block has a random generator of its own, keyed by seed, table and block,
so the bytes do not depend on how many workers make them. Arithmetic that reaches a file is integer
arithmetic: no processor rounds it differently.
"""
