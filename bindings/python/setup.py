# SPDX-License-Identifier: Apache-2.0
"""Puts libstint into the wheel, whose tag therefore names the platform. $STINT_LIBRARY says which
file, without it the one of the build folder."""
import ctypes
import os
import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = pathlib.Path(os.environ.get("STINT_LIBRARY") or HERE / "../../build/libstint.so")


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        shutil.copy(LIBRARY.resolve(), pathlib.Path(self.build_lib, "stint", "libstint.so.0"))


class PlatformWheel(bdist_wheel):
    """Any Python 3, but this platform: ctypes needs no ABI of Python's."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


def version():
    """The library's own."""
    if not LIBRARY.exists():
        raise SystemExit(f"{LIBRARY} is not there: run make, or set STINT_LIBRARY")
    function = ctypes.CDLL(str(LIBRARY.resolve())).stint_version
    function.restype = ctypes.c_char_p
    return function().decode()


setup(version=version(), distclass=WithLibrary,
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
