"""headwater: learn the hidden sources of a stream."""
