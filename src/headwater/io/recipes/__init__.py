"""Recipes: how rows are made of what was read."""
