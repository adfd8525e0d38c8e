"""A model beside a stream that never ends: events in, scores out at once, each learned exactly once."""
