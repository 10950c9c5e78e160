#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# NVIDIA's own Python binding (PyPI package `nvidia-ml-py`) on libjogak-nvml-sim.so: a program that
# nobody here wrote has to find on it the machine that the YAML describes. The package is installed
# into a virtual environment in build/nvml-py/ when it is not there; without it and without a way to
# get it the test is skipped (exit code 77).
# usage: test/nvml/nvidia_ml_py_test.py [unittest options]   with JOGAK_NVML_SIM_LIBRARY set

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def main():
    library = os.environ.get("JOGAK_NVML_SIM_LIBRARY")
    if not library:
        print("JOGAK_NVML_SIM_LIBRARY: the path of libjogak-nvml-sim.so", file=sys.stderr)
        return 2
    sys.path.insert(0, str(HERE.parent))
    from python_package import obtain

    if not obtain("nvml-py", "pynvml", "nvidia-ml-py>=12.560", __file__):
        return SKIPPED
    sys.path.insert(0, str(HERE))
    import nvidia_ml_py_cases

    return nvidia_ml_py_cases.run(sys.argv, library)


if __name__ == "__main__":
    sys.exit(main())
