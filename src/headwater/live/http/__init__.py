"""A live model behind HTTP: one more source of events, and a page to look at."""
