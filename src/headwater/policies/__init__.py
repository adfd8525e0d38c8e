"""Policies: what a stream does besides learning, each with its record and hooks."""
