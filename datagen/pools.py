"""Names and places from Faker, drawn once into seeded pools; rows are sampled from them in bulk."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from datagen.randomness import Part, generator
from espbench.errors import MissingExtra, UsageError

DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Pools:
    """Distinct values, each within its column's length, in an order that the seed decides."""

    first_names: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[str, ...]
    states: tuple[str, ...]


@cache
def make_pools(seed: int, locale: str) -> Pools:
    """Draw the pools; raises `UsageError` for a locale that Faker does not know."""
    try:
        # Worker processes sample pools and never draw them: they start sooner without Faker.
        from faker import Faker  # noqa: PLC0415 - as said
        from faker.config import AVAILABLE_LOCALES  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "datagen") from error
    if locale not in AVAILABLE_LOCALES:
        raise UsageError(
            f"there is no locale {locale!r}", "use one of Faker's, as in --locale en_US or de_DE"
        )
    random = generator(seed, Part.POOLS)
    faker = Faker(locale)
    faker.seed_instance(int(random.integers(0, 2**62)))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def two_letters() -> str:
        return "".join(letters[int(number)] for number in random.integers(0, len(letters), 2))

    # Not every country has states with two capital letters.
    state = getattr(faker, "state_abbr", two_letters)
    states = [value for value in _distinct(state, 2, 500) if value.isascii() and value.isupper()]
    return Pools(
        first_names=_distinct(faker.first_name, 16),
        streets=_distinct(faker.street_name, 20),
        cities=_distinct(faker.city, 20),
        states=tuple(value for value in states if len(value) == 2)
        or _distinct(two_letters, 2, 100),
    )


def _distinct(draw: Callable[[], str], longest: int, draws: int = DRAWS) -> tuple[str, ...]:
    drawn = dict.fromkeys(draw() for _ in range(draws))
    # A backslash or a control character would need quoting, which the files do not have.
    fitting = [value for value in drawn if 0 < len(value) <= longest and value.isprintable()]
    return tuple(value for value in fitting if "\\" not in value) or ("-",)
