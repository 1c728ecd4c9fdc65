"""Starts the runner next to this file. `python3 -I` looks nowhere by itself; nothing may be written into the image."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from realcli_runner.main import main  # noqa: E402  (the path comes first)

sys.exit(main())
