"""Runs rdma-core's own tests of pyverbs, unpacked in the folder of the first argument, and tells of each in a line of JSON."""

import gc
import importlib.machinery
import json
import os
import random
import sys
import unittest
import warnings

# What a test leaves in a cycle, the collector of Python 3.13 takes apart in any order: it closes a device, and then destroys queues
# of it, which are gone. pyverbs has nothing against that.
gc.disable()

folder = sys.argv.pop(1)
warnings.simplefilter("ignore")
sys.path.insert(0, folder)
sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's packages are, whichever python3 this is
tests = importlib.machinery.SourceFileLoader("tests", f"{folder}/__init__.py").load_module()
from args_parser import parser  # noqa: E402

parser.parse_args()


class Teller(unittest.TestResult):
    def tell(self, test, outcome, reason=""):
        print(json.dumps({"test": test.id(), "outcome": outcome, "reason": reason}), flush=True)

    def startTest(self, test):
        random.seed(test.id())  # they draw what they try
        super().startTest(test)

    def addSuccess(self, test):
        self.tell(test, "ok")

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)

    def addFailure(self, test, error):
        self.tell(test, "failed", f"{error[0].__name__}: {error[1]}")

    addError = addFailure


unittest.defaultTestLoader.loadTestsFromModule(tests).run(Teller())
os._exit(0)  # without a last collection
