"""The text of records, taken apart without a Python loop over them.

A value is `<field>;…;<line>`: a number of fields before the line (id and due time in a source, the
id alone in a sink), then a line of tab-separated columns. The work is done on the bytes of a whole
batch: positions of separators by numpy, integers digit by digit over all records at once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
# Numbers of rows, in as few bytes as there are rows.
Rows = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

SEMICOLON, TAB, MINUS, ZERO = 0x3B, 0x09, 0x2D, 0x30
# 18 digits always fit into 64 bits; a longer number is no integer of this benchmark.
MAX_DIGITS = 18
WORD = 8
# Of each byte of a word: a digit's upper half, what makes more than nine carry into it, that half.
_ZEROS = np.uint64(0x3030303030303030)
_SIX = np.uint64(0x0606060606060606)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)


@dataclass(frozen=True, slots=True)
class RawBytes:
    """The bytes of a batch of values and where each value begins and ends in them."""

    data: Bytes
    start: Ints
    stop: Ints
    present: Bools

    @classmethod
    def of(cls, values: pa.Array) -> "RawBytes":
        """The bytes behind an Arrow binary array; a null value is empty and not `present`."""
        wide = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
        _, ends, data = values.buffers()
        count = len(values)
        bounds = np.zeros(count + 1, dtype=np.int64)
        if ends is not None and count:
            raw = np.frombuffer(ends, dtype=np.int64 if wide else np.int32)
            bounds = raw[values.offset : values.offset + count + 1].astype(np.int64)
        low, high = int(bounds[0]), int(bounds[-1])
        content = np.frombuffer(data, dtype=np.uint8)[low:high] if high > low else _NOTHING
        present = (
            values.is_valid().to_numpy(zero_copy_only=False)
            if values.null_count
            else np.ones(count, dtype=np.bool_)
        )
        start, stop = bounds[:-1] - low, bounds[1:] - low
        return cls(content, start, np.where(present, stop, start), present)


_NOTHING = np.zeros(0, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Fields:
    """Values taken apart: where fields and columns begin and end, and which values have them all.

    `has_fields`: there are enough semicolons; `has_columns`: and the line has the wanted number of
    columns. Positions of a value that lacks them mean nothing.
    """

    raw: RawBytes
    field_start: list[Ints]
    field_stop: list[Ints]
    line_start: Ints
    first_tab: Ints
    tabs: Ints
    columns: int
    has_fields: Bools
    has_columns: Bools

    def integer(self, number: int) -> tuple[Ints, Bools]:
        """The integers of field `number` (from 0), and which of them are integers."""
        found, good = integers(self.raw.data, self.field_start[number], self.field_stop[number])
        return found, good & self.has_fields

    def whole(self, number: int) -> tuple[Ints, Bools]:
        """Likewise, digits alone: a number without a sign."""
        found, good = self.integer(number)
        signs = self.raw.data[self.field_start[number][good]] == MINUS
        good[good] = ~signs
        return found, good

    def column(self, number: int) -> tuple[Ints, Bools]:
        """The integers of column `number` (from 1) of the lines, and which are integers."""
        start, stop = self.column_bounds(number)
        found, good = integers(self.raw.data, start, stop)
        return found, good & self.has_columns

    def column_bounds(self, number: int) -> tuple[Ints, Ints]:
        """Where column `number` (from 1) begins and ends."""
        start = self.line_start if number == 1 else self._tab(number - 2) + 1
        stop = self.raw.stop if number == self.columns else self._tab(number - 1)
        return start, stop

    def _tab(self, number: int) -> Ints:
        if not len(self.tabs):
            return np.zeros(len(self.first_tab), dtype=np.int64)
        place = np.minimum(self.first_tab + number, len(self.tabs) - 1)
        return self.tabs[place]


def take_apart(raw: RawBytes, fields: int, columns: int) -> Fields:
    """Find `fields` semicolon-ended fields and then `columns` tab-separated columns."""
    return _all_alike(raw, fields, columns) or _one_by_one(raw, fields, columns)


def _all_alike(raw: RawBytes, fields: int, columns: int) -> Fields | None:
    """Take values apart of which each has all fields and columns, and no semicolon more.

    Then the separators of a batch, in their order, are a table: a line for each value.
    """
    count, tabs = len(raw.start), columns - 1
    is_semicolon = raw.data == SEMICOLON
    if not count or not tabs or np.count_nonzero(is_semicolon) != count * fields:
        return None
    places = np.flatnonzero(is_semicolon | (raw.data == TAB))
    if len(places) != count * (fields + tabs):
        return None
    table = places.reshape(count, fields + tabs)
    # As many semicolons as there are in all stand in front, so that the rest are tabs.
    alike = (table[:, 0] >= raw.start) & (table[:, -1] < raw.stop)
    for number in range(fields):
        alike &= raw.data[table[:, number]] == SEMICOLON
    if not alike.all():
        return None
    starts = [raw.start, *(table[:, number] + 1 for number in range(fields))]
    return Fields(
        raw=raw,
        field_start=starts[:-1],
        field_stop=[table[:, number] for number in range(fields)],
        line_start=starts[-1],
        first_tab=np.arange(fields, len(places), fields + tabs),
        tabs=places,
        columns=columns,
        has_fields=raw.present,
        has_columns=raw.present,
    )


def _one_by_one(raw: RawBytes, fields: int, columns: int) -> Fields:
    """Take values apart whatever they are."""
    semicolons = np.flatnonzero(raw.data == SEMICOLON)
    first = np.searchsorted(semicolons, raw.start)
    inside = np.searchsorted(semicolons, raw.stop) - first
    has_fields = raw.present & (inside >= fields)
    starts, stops = [], []
    begin = raw.start
    for number in range(fields):
        place = np.minimum(first + number, max(len(semicolons) - 1, 0))
        end = np.where(has_fields, semicolons[place] if len(semicolons) else 0, begin)
        starts.append(begin)
        stops.append(end)
        begin = np.where(has_fields, end + 1, begin)
    tabs = np.flatnonzero(raw.data == TAB)
    first_tab = np.searchsorted(tabs, begin)
    count = np.searchsorted(tabs, raw.stop) - first_tab
    return Fields(
        raw=raw,
        field_start=starts,
        field_stop=stops,
        line_start=begin,
        first_tab=first_tab,
        tabs=tabs,
        columns=columns,
        has_fields=has_fields,
        has_columns=has_fields & (count == columns - 1),
    )


def integers(data: Bytes, start: Ints, stop: Ints) -> tuple[Ints, Bools]:
    """Decimal integers in `data[start:stop]`, each an optional minus and at most 18 digits.

    Returns the numbers and which of them are integers; where one is not, its number is 0.
    """
    count = len(start)
    found, good = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    rows = np.flatnonzero(stop > start)
    if not len(rows):
        return found, good
    negative = data[start[rows]] == MINUS
    digits = (stop - start)[rows] - negative
    fits = (digits >= 1) & (digits <= MAX_DIGITS)
    if not fits.all():
        rows, negative, digits = rows[fits], negative[fits], digits[fits]
    numbers, right = _digits(data, stop[rows], digits)
    found[rows] = np.where(right, np.where(negative, -numbers, numbers), 0)
    good[rows] = right
    return found, good


def _digits(data: Bytes, stop: Ints, count: Ints) -> tuple[Ints, Bools]:
    """Numbers of `count` digits that end before `stop`, and where all of these are digits.

    Eight digits at a time, as one word of 64 bits.
    """
    numbers = np.zeros(len(stop), dtype=np.int64)
    right = np.ones(len(stop), dtype=np.bool_)
    if not len(stop):
        return numbers, right
    words = unaligned_words(data)
    for place in range(0, int(count.max()), WORD):
        end = stop - place
        begin = np.maximum(end - WORD, 0)
        digits = np.minimum(count - place, WORD)
        # The last digit goes to the highest byte; what is before the first one becomes "0".
        absent = (8 * (WORD - np.maximum(digits, 0))).astype(np.uint64)
        word = words[begin] << (8 * (begin + WORD - end)).astype(np.uint64)
        word ^= _ZEROS
        word >>= absent
        word <<= absent
        right &= ((word | (word + _SIX)) & _HIGH) == 0
        part = _number(word).astype(np.int64)
        numbers += part if place == 0 else part * 10**place
    return numbers, right


def unaligned_words(data: Bytes) -> npt.NDArray[np.uint64]:
    """The eight bytes that begin at each place."""
    if len(data) < WORD:
        data = np.concatenate([data, np.zeros(WORD - len(data), dtype=np.uint8)])
    return np.ndarray((len(data) - WORD + 1,), dtype="<u8", buffer=data, strides=(1,))


def _number(word: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The number of eight digits, 0 to 9 a byte: pairs, then fours, then all of them."""
    word = (word * np.uint64(10)) + (word >> np.uint64(8))
    word &= np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100)) + (word >> np.uint64(16))
    word &= np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10_000)) + (word >> np.uint64(32))
    return word & np.uint64(0xFFFFFFFF)


def is_utf8(raw: RawBytes) -> Bools:
    """Which values are UTF-8; only those with bytes beyond ASCII are looked at one by one."""
    good: Bools = raw.present.copy()
    if not len(raw.data) or int(raw.data.max()) < 0x80:
        return good
    high = np.flatnonzero(raw.data >= 0x80)
    suspects = np.flatnonzero(np.searchsorted(high, raw.stop) > np.searchsorted(high, raw.start))
    for index in suspects:
        good[index] &= _decodes(raw.data[raw.start[index] : raw.stop[index]].tobytes())
    return good


def _decodes(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def text(value: bytes | None, limit: int = 2_000) -> str | None:
    """A value as a witness shows it: what is not UTF-8 escaped, what is gigantic cut."""
    if value is None:
        return None
    shown = value[: limit + 1].decode("utf-8", "backslashreplace")
    return shown if len(shown) <= limit else shown[:limit] + "…"
