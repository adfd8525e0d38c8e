"""Ids of the last events, so that one that comes twice is learned once; in bounded memory."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from itertools import islice

DIGEST_BYTES = 8  # of an id: two of 65,536 ids that are kept are the same by chance once in 8.6e9 runs
LATEST_IDS = 2**16  # ids that are kept, if no other number is given


def digest_of(identifier: object) -> bytes:
    """Return the digest of an id: a text, or a number."""
    return hashlib.blake2b(str(identifier).encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest()


class SeenIds:
    """Digests of the latest ids, in the order in which they came.

    Examples
    --------
    >>> from headwater.live.seen_ids import SeenIds, digest_of
    >>> seen = SeenIds(2)
    >>> [seen.add(digest_of(one)) for one in "abacb"]
    [True, True, False, True, False]
    >>> seen.add(digest_of("a"))  # only the last two are kept
    True
    """

    def __init__(self, limit: int = LATEST_IDS, digests: Iterable[bytes] = ()) -> None:
        self.limit = limit
        self._seen: dict[bytes, None] = dict.fromkeys(digests)

    def __len__(self) -> int:
        return len(self._seen)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._seen

    def add(self, digest: bytes) -> bool:
        """Note an id; return whether it is new."""
        if digest in self._seen:
            return False
        self._seen[digest] = None
        if len(self._seen) > self.limit:
            del self._seen[next(iter(self._seen))]
        return True

    def discard(self, digest: bytes) -> None:
        """Forget an id, if it is known."""
        self._seen.pop(digest, None)

    def copy(self) -> SeenIds:
        """Return a copy that goes its own way."""
        return SeenIds(self.limit, self._seen)

    def to_text(self) -> str:
        """Return all digests as text."""
        return base64.b64encode(b"".join(self._seen)).decode()

    @classmethod
    def from_text(cls, text: object, limit: int = LATEST_IDS) -> SeenIds:
        """Return what `to_text` wrote, or refuse it."""
        if not isinstance(text, str):
            raise ValueError("ids must be a text")
        found = base64.b64decode(text, validate=True)
        if len(found) % DIGEST_BYTES:
            raise ValueError("ids are cut short")
        digests = [found[at : at + DIGEST_BYTES] for at in range(0, len(found), DIGEST_BYTES)]
        return cls(limit, islice(digests, max(0, len(digests) - limit), None))
