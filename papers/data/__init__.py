"""The data sets of the pages: where they come from, and whether a directory holds them as they were measured."""
