"""Readers: one format a file."""
