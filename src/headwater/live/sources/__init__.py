"""Where events come from, a file each."""
