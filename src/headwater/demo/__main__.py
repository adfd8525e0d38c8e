"""python -m headwater.demo."""

from __future__ import annotations

import sys

from headwater.demo import main

if __name__ == "__main__":
    sys.exit(main())
