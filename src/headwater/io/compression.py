"""Compression of files: recognized by the ending of a name, or by the first bytes."""

from __future__ import annotations

import os

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
CODEC_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
MAGIC_BYTES = 4  # bytes of the longest magic number


def strip_codec_suffix(name: str) -> str:
    """Return a name without the ending of a compression."""
    stem, ending = os.path.splitext(name)
    return stem if ending in CODECS else name


def codec_of(beginning: bytes) -> str | None:
    """Return the codec whose magic number these bytes begin with, or None."""
    return next((codec for magic, codec in CODEC_MAGIC.items() if beginning.startswith(magic)), None)


def may_be_compressed(beginning: bytes) -> bool:
    """Whether these bytes are a proper prefix of a magic number, so that more bytes are needed to decide."""
    return any(len(beginning) < len(magic) and magic.startswith(beginning) for magic in CODEC_MAGIC)
