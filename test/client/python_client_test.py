#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The official Python client of Kubernetes (PyPI package `kubernetes`) against a playground: a
# program that nobody here wrote has to be content with the server. The package is installed into
# a virtual environment in build/client/ when it is not there; without it and without a way to get
# it the test is skipped (exit code 77).
# usage: test/client/python_client_test.py [unittest options]   with JOGAK_BINARY set

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / "build" / "client"
WANTED = "kubernetes>=31"
SKIPPED = 77


def in_environment():
    """The interpreter of the virtual environment, made when missing; None when it cannot be."""
    python = ENVIRONMENT / "bin" / "python3"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True,
                           capture_output=True, timeout=120)
        if subprocess.run([python, "-c", "import kubernetes"], capture_output=True).returncode:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--retries", "1",
                            "--disable-pip-version-check", WANTED],
                           check=True, capture_output=True, timeout=240)
    except (subprocess.SubprocessError, OSError):
        return None
    return python


def main():
    try:
        import kubernetes  # noqa: F401
    except ImportError:
        python = None if sys.prefix == str(ENVIRONMENT) else in_environment()
        if python is None:
            print(f"skipped: no Python package {WANTED}, and pip could not install it")
            return SKIPPED
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
    import client_cases

    return client_cases.run(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
