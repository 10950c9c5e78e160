#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# compare.py itself, on a simulated GPU and a made nvidia-smi: it agrees where the two agree, and
# names what differs.
# usage: test/gpu/compare_test.py JOGAK

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = """apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: compared
driver: {driverVersion: 550.90.07, cudaMajor: 12, cudaMinor: 4}
gpus:
- model: A100-SXM4-40GB
  load: {shape: constant, high: 40}
  processes: [{pid: 77, name: python3, memoryMib: 1000}]
"""
PATHS = [("uuid", "uuid", "{}"), ("name", "product_name", "{}"),
         ("pciBusId", "pci/pci_bus_id", "{}"), ("serial", "serial", "{}"),
         ("memoryMib", "fb_memory_usage/total", "{} MiB"),
         ("minor", "minor_number", "{}"),
         ("inforomEcc", "inforom_version/ecc_object", "{}"),
         ("readings/temperatureC", "temperature/gpu_temp", "{} C"),
         ("readings/gpuPercent", "utilization/gpu_util", "{} %")]


def get(gpu, path):
    for key in path.split("/"):
        gpu = gpu[key]
    return gpu


def xml_of(node, changes):
    """What nvidia-smi -q -x says of this node, with other texts at some paths."""
    gpu = node["gpus"][0]
    values = {xml: form.format(get(gpu, ours)) for ours, xml, form in PATHS}
    values["gpu_power_readings/current_power_limit"] = "400.00 W"
    values["gpu_power_readings/requested_power_limit"] = "400.00 W"
    values["fan_speed"] = "N/A"
    values["processes/process_info/pid"] = "77"
    values.update(changes)
    tree = {}
    for path, text in values.items():
        *parents, leaf = path.split("/")
        at = tree
        for parent in parents:
            at = at.setdefault(parent, {})
        at[leaf] = text

    def written(part):
        return "".join(f"<{key}>{written(value) if isinstance(value, dict) else value}</{key}>"
                       for key, value in part.items())

    return ("<nvidia_smi_log><driver_version>550.90.07</driver_version><gpu>"
            f"{written(tree)}</gpu></nvidia_smi_log>")


class CompareTest(unittest.TestCase):
    jogak = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.machine = os.path.join(self.folder, "machine.yaml")
        with open(self.machine, "w", encoding="utf-8") as file:
            file.write(MACHINE)

    def compare(self, changes):
        source = f"sim:{self.machine}"
        inspected = subprocess.run(
            [self.jogak, "agent", "inspect", "-o", "json", "--nvml", source],
            check=True, capture_output=True, text=True)
        smi = os.path.join(self.folder, "nvidia-smi")
        with open(smi, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\ncat <<'END'\n" + xml_of(json.loads(inspected.stdout), changes)
                       + "\nEND\n")
        os.chmod(smi, 0o755)
        return subprocess.run(
            [sys.executable, os.path.join(HERE, "compare.py"), "--jogak", self.jogak, "--nvml",
             source, "--smi", smi, "--node-name", "compared", "--record",
             os.path.join(self.folder, "kept.yaml")],
            capture_output=True, text=True)

    def test_equal_machines_are_equal(self):
        said = self.compare({})
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("1 GPUs, 0 differences", said.stdout)
        self.assertIn("ok    DCGM_FI_DEV_ENFORCED_POWER_LIMIT: 400.0 | 400", said.stdout)
        self.assertIn("ok    DCGM_FI_DEV_FAN_SPEED: None | None", said.stdout)
        with open(os.path.join(self.folder, "kept.yaml"), encoding="utf-8") as file:
            self.assertIn("NvmlSimulation", file.read())

    def test_what_differs_is_named(self):
        said = self.compare({"serial": "1", "gpu_power_readings/current_power_limit": "300 W",
                             "fan_speed": "30 %", "processes/process_info/pid": "78"})
        self.assertEqual(said.returncode, 1, said.stdout + said.stderr)
        for what in ("serial:", "powerLimitMw: 400 beside 300", "fanPercent: None beside 30",
                     "DCGM_FI_DEV_ENFORCED_POWER_LIMIT: 400.0 beside 300",
                     "DCGM_FI_DEV_FAN_SPEED: None beside 30", "processes: [77] beside [78]"):
            self.assertIn(what, said.stdout)

    def test_without_a_gpu_it_is_skipped(self):
        said = subprocess.run([sys.executable, os.path.join(HERE, "compare.py"), "--smi",
                               os.path.join(self.folder, "none")], capture_output=True, text=True)
        self.assertEqual(said.returncode, 77)


if __name__ == "__main__":
    CompareTest.jogak = sys.argv.pop(1)
    unittest.main()
