"""verl's names for what is ours: `verl.protocol` and `verl.single_controller`, the same modules under both names."""

import importlib
import importlib.abc
import importlib.machinery
import sys


class Ours(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `verl.protocol...` and `verl.single_controller...` in `workergroups`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[:2] in (["verl", "protocol"], ["verl", "single_controller"]):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return importlib.import_module("workergroups" + spec.name.removeprefix("verl"))

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Ours())

from workergroups import DataProto  # noqa: E402, F401
