"""Makes the corpus importable by name: test modules are no packages here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
