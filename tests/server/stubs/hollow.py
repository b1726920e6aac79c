"""Modules that have every name and do nothing, for packages that SGLang imports on a CPU and never calls."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types


class Anything:
    """Takes any call, gives any attribute."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class HollowModule(types.ModuleType):
    """A package whose attributes are Anything."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class HollowFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule of one package."""

    def __init__(self, package: str) -> None:
        self.prefix = package + "."

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith(self.prefix):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return HollowModule(spec.name)

    def exec_module(self, module):
        pass


def hollow(package: str) -> None:
    """Makes the importing package and all below it hollow."""
    sys.meta_path.append(HollowFinder(package))
    sys.modules[package].__class__ = HollowModule
