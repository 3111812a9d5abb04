# SPDX-License-Identifier: BSD-3-Clause
"""Runs rdma-core's own test suite and writes down how each test ended.

usage: record.py SUITE_DIR RESULTS OPTION...   (what run_tests.py of the suite takes)

RESULTS gets two lines a test, at its start and at its end, tab-separated: NAME and one of begin,
pass, fail, skip, then the reason.  A test that ends the process leaves its begin alone.
"""

import importlib.util
import os
import sys
import unittest


class Result(unittest.TextTestResult):
    out = None

    def _write(self, test, how, why=""):
        name = test.id().removeprefix("tests.")
        self.out.write(f"{name}\t{how}\t{' '.join(str(why).split())}\n")
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self._write(test, "begin")

    def addSuccess(self, test):
        super().addSuccess(test)
        self._write(test, "pass")

    def addError(self, test, err):
        super().addError(test, err)
        self._write(test, "fail", err[1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._write(test, "fail", err[1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._write(test, "skip", reason)


def main():
    suite, results = sys.argv[1:3]
    del sys.argv[1:3]
    sys.path.insert(0, suite)
    from args_parser import parser
    spec = importlib.util.spec_from_file_location(
        "tests", os.path.join(suite, "__init__.py"), submodule_search_locations=[suite])
    tests = importlib.util.module_from_spec(spec)
    sys.modules["tests"] = tests
    spec.loader.exec_module(tests)
    parser.parse_args()
    with open(results, "w") as Result.out:
        unittest.main(module=tests, testRunner=unittest.TextTestRunner(
            verbosity=2, resultclass=Result))


main()
