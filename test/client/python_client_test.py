#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# The official Python client of Kubernetes (PyPI package `kubernetes`) against a playground: a
# program that nobody here wrote has to be content with the server. The package is installed into
# a virtual environment in build/client/ when it is not there; without it and without a way to get
# it the test is skipped (exit code 77).
# usage: test/client/python_client_test.py [unittest options]   with JOGAK_BINARY set

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def main():
    sys.path.insert(0, str(HERE.parent))
    from python_package import obtain

    if not obtain("client", "kubernetes", "kubernetes>=31", __file__):
        return SKIPPED
    sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
    import client_cases

    return client_cases.run(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
