"""Policies: what a stream does besides learning, each with a record and hooks of its own."""
