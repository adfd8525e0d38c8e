"""Recipes: how blocks that were read become rows of chunks."""
