"""The mutation suite: seeded mutations of right captures, and how many verdicts are right.

python benchmarks/mutations.py [--rounds 60] [--first 0] [--queries q0,q1,q2,q3,q4,q5]
"""

import argparse
import sys
import time

from validator.proof.suite import SUITE, failures


def main() -> int:
    """Mutate, judge and tell; 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--queries", default=",".join(SUITE))
    given = parser.parse_args()
    begun = time.perf_counter()
    mutated = wrong = 0
    for query in given.queries.split(","):
        bad = []
        for mutate in SUITE[query]:
            bad += list(failures(query, mutate, given.rounds, given.first))
        count = given.rounds * len(SUITE[query])
        print(f"{query}: {len(SUITE[query])} mutations, {count - len(bad):,} of {count:,} right")
        for line in bad:
            print(f"  {line}")
        mutated, wrong = mutated + count, wrong + len(bad)
    took = time.perf_counter() - begun
    print(f"score: {mutated - wrong:,} of {mutated:,} verdicts right, {took:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
