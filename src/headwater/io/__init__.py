"""Streams: rows of files, tables and generators in chunks, in bounded memory."""
