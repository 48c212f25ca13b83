"""Where randomness comes from: one generator per block, keyed, never global."""

from enum import IntEnum

import numpy as np


class Part(IntEnum):
    """What a generator is for. The numbers decide the bytes of every file: never renumber."""

    POOLS = 0
    CONSTANTS = 1
    ITEM = 2
    CUSTOMER = 3
    ORDERS = 4
    LINES = 5
    WORKPLACE = 6
    SENSOR_EDGES = 7
    SENSOR = 8
    DIST_INFO = 9
    SENSOR_TIMES = 10


def generator(seed: int, part: Part, *block: int) -> np.random.Generator:
    """The generator of one block of one part; equal arguments give equal streams."""
    sequence = np.random.SeedSequence(seed, spawn_key=(int(part), *block))
    return np.random.Generator(np.random.PCG64(sequence))
