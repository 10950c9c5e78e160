# SPDX-License-Identifier: Apache-2.0
#
# A package from PyPI for a test, in a virtual environment of its own under build/ that is made when
# it is missing.

import importlib
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(__file__).resolve().parents[1] / "build"


def in_environment(environment, module, wanted):
    """The interpreter of the virtual environment, made when missing; None when it cannot be."""
    python = environment / "bin" / "python3"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True,
                           capture_output=True, timeout=120)
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--retries", "1",
                            "--disable-pip-version-check", wanted],
                           check=True, capture_output=True, timeout=240)
    except (subprocess.SubprocessError, OSError):
        return None
    return python


def obtain(folder, module, wanted, script):
    """True when the module is there. Starts `script` again where it is, which does not return;
    False, and says so, when it cannot be had."""
    try:
        importlib.import_module(module)
        return True
    except ImportError:
        pass
    environment = BUILD / folder
    python = None
    if sys.prefix != str(environment):
        python = in_environment(environment, module, wanted)
    if python is None:
        print(f"skipped: no Python package {wanted}, and pip could not install it")
        return False
    return os.execv(python, [str(python), script, *sys.argv[1:]])
