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
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / "build" / "nvml-py"
WANTED = "nvidia-ml-py>=12.560"
SKIPPED = 77


def in_environment():
    """The interpreter of the virtual environment, made when missing; None when it cannot be."""
    python = ENVIRONMENT / "bin" / "python3"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True,
                           capture_output=True, timeout=120)
        if subprocess.run([python, "-c", "import pynvml"], capture_output=True).returncode:
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--retries", "1",
                            "--disable-pip-version-check", WANTED],
                           check=True, capture_output=True, timeout=240)
    except (subprocess.SubprocessError, OSError):
        return None
    return python


def main():
    library = os.environ.get("JOGAK_NVML_SIM_LIBRARY")
    if not library:
        print("JOGAK_NVML_SIM_LIBRARY: the path of libjogak-nvml-sim.so", file=sys.stderr)
        return 2
    try:
        import pynvml  # noqa: F401
    except ImportError:
        python = None if sys.prefix == str(ENVIRONMENT) else in_environment()
        if python is None:
            print(f"skipped: no Python package {WANTED}, and pip could not install it")
            return SKIPPED
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    sys.path.insert(0, str(HERE))
    import nvidia_ml_py_cases

    return nvidia_ml_py_cases.run(sys.argv, library)


if __name__ == "__main__":
    sys.exit(main())
