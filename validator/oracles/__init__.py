"""One oracle per query: what the answers should have been, from the captured input alone."""

from espbench.names import Query
from validator.oracles import identify_errors, identity
from validator.oracles.base import Inputs, Oracle

ORACLES: dict[str, Oracle] = {
    oracle.name: oracle for oracle in (identity.ORACLE, identify_errors.ORACLE)
}


def oracle_of(query: Query) -> Oracle | None:
    """The oracle of a query, or None where it is not written yet."""
    return ORACLES.get(query.name)


__all__ = ["ORACLES", "Inputs", "Oracle", "oracle_of"]
