"""Which query is implemented where."""

from collections.abc import Mapping

from espbench.errors import UsageError
from espbench.names import Query
from queries import identify_errors, identity
from queries.definition import Definition

DEFINITIONS: Mapping[Query, Definition] = {
    module.DEFINITION.query: module.DEFINITION for module in (identity, identify_errors)
}


def definition_of(query: Query) -> Definition:
    """The Spark implementation of a query; `UsageError` where there is none yet."""
    try:
        return DEFINITIONS[query]
    except KeyError as error:
        known = ", ".join(each.name for each in DEFINITIONS)
        raise UsageError(f"{query.name} does not run on Spark yet", f"these do: {known}") from error
