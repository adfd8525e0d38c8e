"""Streams: rows of files, tables and generators as chunks that models learn from, in bounded memory."""
