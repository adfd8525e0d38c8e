"""Where answers go, a file each."""
