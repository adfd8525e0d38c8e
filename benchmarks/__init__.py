"""headwater and its peers side by side in one run: `python -m benchmarks`. How to read it is in README.md."""
