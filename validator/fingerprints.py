"""Fingerprints: 64 bits that stand for the text of a record.

Texts are compared by the hundred million, and kept they would fill the memory. A text is cut from
its end into words of eight bytes; each is mixed, without loss, with a key of its place, and the
mixtures are added. Texts that differ within one word therefore never have the same fingerprint,
others with a probability of 2^-64 per pair. The keys are drawn anew in every process, so that
nobody can write a text to fit.
"""

import hashlib
import secrets

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from validator.records import SEMICOLON, WORD, Bytes, Ints, RawBytes, unaligned_words

Prints = npt.NDArray[np.uint64]

# Beyond it texts are rare, and taken one by one.
LONG = 4_096
_KEYS = np.array([secrets.randbits(64) for _ in range(LONG // WORD + 3)], dtype=np.uint64)
_NULL, _LENGTH = _KEYS[-2:]
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF, _EIGHT = np.uint64(32), np.uint64(8)


def nothing() -> Prints:
    """No fingerprints."""
    return np.zeros(0, dtype=np.uint64)


def whole_values(values: pa.Array) -> Prints:
    """The fingerprint of each value; null has one of its own."""
    raw = RawBytes.of(values)
    return np.where(raw.present, fingerprints(raw.data, raw.start, raw.stop), _NULL)


def id_and_line(values: pa.Array, fields: int) -> Prints:
    """The fingerprint of id and line of each value that has `fields` fields before its line."""
    return of_id_and_line(RawBytes.of(values), fields)


def of_id_and_line(raw: RawBytes, fields: int) -> Prints:
    """Likewise; a value that has fewer fields has the fingerprint of no other kind of text."""
    semicolons = np.flatnonzero(raw.data == SEMICOLON)
    first = np.searchsorted(semicolons, raw.start)
    enough = np.searchsorted(semicolons, raw.stop) - first >= fields
    if not enough.any():
        return np.full(len(raw.start), _NULL)
    last = len(semicolons) - 1
    id_stop = np.where(enough, semicolons[np.minimum(first, last)], raw.start)
    line_start = np.where(enough, semicolons[np.minimum(first + fields - 1, last)] + 1, raw.stop)
    number = fingerprints(raw.data, raw.start, id_stop)
    found = _mixed(number ^ _NULL) + fingerprints(raw.data, line_start, raw.stop)
    return np.where(enough, found, _NULL)


def fingerprints(data: Bytes, start: Ints, stop: Ints) -> Prints:
    """The fingerprint of each `data[start:stop]`."""
    length = stop - start
    found = _mixed(length.astype(np.uint64) + _LENGTH)
    if not len(length) or not len(data):
        return found
    words = unaligned_words(data)
    long = length > LONG
    longest = int(length.max(initial=0, where=~long))
    shortest = int(length.min())
    for place in range(0, longest, WORD):
        end = stop - place
        begin = np.maximum(end - WORD, 0)
        word = words[np.minimum(begin, len(words) - 1)]
        key = _KEYS[place // WORD]
        if place + WORD <= shortest:
            found += _mixed(word + key)
            continue
        size = np.clip(length - place, 0, WORD)
        # The last byte goes to the highest place; what is before the first one is cut off.
        word <<= _EIGHT * np.clip(begin + WORD - end, 0, WORD).astype(np.uint64)
        absent = _EIGHT * (WORD - size).astype(np.uint64)
        word >>= absent
        found += np.where(size > 0, _mixed(word + key), np.uint64(0))
    for row in np.flatnonzero(long):
        found[row] = _of_long(data[start[row] : stop[row]])
    return found


def _of_long(content: Bytes) -> np.uint64:
    digest = hashlib.blake2b(content.tobytes(), digest_size=WORD, key=_KEYS[:WORD].tobytes())
    return np.uint64(int.from_bytes(digest.digest(), "little"))


def _mixed(word: Prints) -> Prints:
    """A number of its own for each number."""
    mixed = word ^ (word >> _HALF)
    mixed *= _FACTOR
    mixed ^= mixed >> _HALF
    mixed *= _FACTOR
    mixed ^= mixed >> _HALF
    return mixed
