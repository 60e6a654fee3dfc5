"""``python -m smoke``."""

import sys

from smoke.cli import main

sys.exit(main())
