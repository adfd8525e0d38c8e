"""Streams: rows of files, tables and generators as chunks that models learn from, in bounded memory."""

from headwater.io.stream import Stream, stream

__all__ = ["Stream", "stream"]
