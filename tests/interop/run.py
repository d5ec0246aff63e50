# SPDX-License-Identifier: MIT
"""Runs the unittest modules beside it (test_*.py) and closes with `N passed, N failed[, N skipped]`."""
import os
import sys
import unittest
from pathlib import Path

# Nothing is fetched at run time, and transformers shows no bars.
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

HERE = Path(__file__).resolve().parent


def main():
    sys.path.insert(0, str(HERE))
    tests = unittest.defaultTestLoader.discover(str(HERE), "test_*.py")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.testsRun - failed - skipped
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
