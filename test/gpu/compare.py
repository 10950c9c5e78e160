#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# `jogak agent inspect -o json` beside `nvidia-smi -q -x` on a machine with an NVIDIA GPU, field by
# field. What moves between the two readings may differ a little; the rest must be equal. Without a
# GPU it says so and exits 77. `--record FILE` keeps a recording of the machine as well.
# usage: test/gpu/compare.py [--jogak PATH] [--record FILE]

import argparse
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SKIPPED = 77
NOT_THERE = ("N/A", "[N/A]", "", "Requested functionality has been deprecated", "Unknown Error")


def number(text):
    """The number that a text begins with ("40960 MiB"), or None for one of its nothings."""
    if text is None or text.strip() in NOT_THERE:
        return None
    word = text.split()[0].replace("%", "")
    return int(float(word))


def text_of(text):
    return None if text is None or text.strip() in NOT_THERE else text.strip()


def enabled(text):
    return {"Enabled": True, "Disabled": False}.get((text or "").strip())


def mib(value):
    return None if value is None else value >> 20


def watts(value):
    return None if value is None else value // 1000


# Our path, the path of nvidia-smi, how each is read, and by how much they may differ.
ROWS = [
    ("uuid", "uuid", str, text_of, 0),
    ("name", "product_name", str, text_of, 0),
    ("brand", "product_brand", str, text_of, 0),
    ("architecture", "product_architecture", lambda v: v, text_of, 0),
    ("pciBusId", "pci/pci_bus_id", str, text_of, 0),
    ("serial", "serial", lambda v: v, text_of, 0),
    ("vbios", "vbios_version", lambda v: v, text_of, 0),
    ("boardPartNumber", "board_part_number", lambda v: v, text_of, 0),
    ("inforomVersion", "inforom_version/img_version", lambda v: v, text_of, 0),
    ("minor", "minor_number", lambda v: v, number, 0),
    ("moduleId", "gpu_module_id", lambda v: v, number, 0),
    ("memoryMib", "fb_memory_usage/total", lambda v: v, number, 0),
    ("bar1Mib", "bar1_memory_usage/total", lambda v: v, number, 0),
    ("graphicsMaxMhz", "max_clocks/graphics_clock", lambda v: v, number, 0),
    ("smMaxMhz", "max_clocks/sm_clock", lambda v: v, number, 0),
    ("memoryMaxMhz", "max_clocks/mem_clock", lambda v: v, number, 0),
    ("videoMaxMhz", "max_clocks/video_clock", lambda v: v, number, 0),
    ("powerLimitMw", "gpu_power_readings/current_power_limit", watts, number, 1),
    ("powerLimitMinMw", "gpu_power_readings/min_power_limit", watts, number, 1),
    ("powerLimitMaxMw", "gpu_power_readings/max_power_limit", watts, number, 1),
    ("powerLimitDefaultMw", "gpu_power_readings/default_power_limit", watts, number, 1),
    ("persistenceMode", "persistence_mode", lambda v: v, enabled, 0),
    ("eccEnabled", "ecc_mode/current_ecc", lambda v: v, enabled, 0),
    ("eccPending", "ecc_mode/pending_ecc", lambda v: v, enabled, 0),
    ("pcieGenerationMax", "pci/pci_gpu_link_info/pcie_gen/max_link_gen", lambda v: v, number, 0),
    ("pcieWidthMax", "pci/pci_gpu_link_info/link_widths/max_link_width",
     lambda v: None if v is None else f"{v}x", text_of, 0),
    ("mig/enabled", "mig_mode/current_mig", lambda v: v, lambda t: enabled(t) or False, 0),
    ("mig/pending", "mig_mode/pending_mig", lambda v: v, lambda t: enabled(t) or False, 0),
    ("readings/memoryUsedBytes", "fb_memory_usage/used", mib, number, 64),
    ("readings/memoryReservedBytes", "fb_memory_usage/reserved", mib, number, 2),
    ("readings/memoryFreeBytes", "fb_memory_usage/free", mib, number, 64),
    ("readings/gpuPercent", "utilization/gpu_util", lambda v: v, number, 60),
    ("readings/memoryPercent", "utilization/memory_util", lambda v: v, number, 60),
    ("readings/encoderPercent", "utilization/encoder_util", lambda v: v, number, 60),
    ("readings/decoderPercent", "utilization/decoder_util", lambda v: v, number, 60),
    ("readings/temperatureC", "temperature/gpu_temp", lambda v: v, number, 5),
    ("readings/memoryTemperatureC", "temperature/memory_temp", lambda v: v, number, 5),
    ("readings/fanPercent", "fan_speed", lambda v: v, number, 10),
    ("readings/smMhz", "clocks/sm_clock", lambda v: v, number, 1500),
    ("readings/memoryMhz", "clocks/mem_clock", lambda v: v, number, 3000),
    ("readings/powerInstantMw", "gpu_power_readings/instant_power_draw", watts, number, 80),
    ("readings/performanceState", "performance_state",
     lambda v: None if v is None else f"P{v}", text_of, 0),
    ("readings/pcieReplays", "pci/replay_counter", lambda v: v, number, 2),
    ("health/eccCorrectedVolatile", "ecc_errors/volatile/dram_correctable", lambda v: v,
     number, 1),
    ("health/eccUncorrectedVolatile", "ecc_errors/volatile/dram_uncorrectable", lambda v: v,
     number, 0),
    ("health/rowsRemappedCorrected", "remapped_rows/remapped_row_corr", lambda v: v, number, 0),
    ("health/rowsRemappedUncorrected", "remapped_rows/remapped_row_unc", lambda v: v, number, 0),
]


def ours(gpu, path):
    value = gpu
    for key in path.split("/"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def compare_gpu(gpu, theirs, failures):
    for path, xml_path, read_ours, read_theirs, slack in ROWS:
        element = theirs.find(xml_path)
        if element is None:
            print(f"  -     {path}: this nvidia-smi does not say")
            continue
        left, right = read_ours(ours(gpu, path)), read_theirs(element.text)
        if isinstance(left, int) and isinstance(right, int) and not isinstance(left, bool):
            same = abs(left - right) <= slack
        else:
            same = left == right
        print(f"  {'ok   ' if same else 'DIFFER'} {path}: {left} | {right}")
        if not same:
            failures.append(f"{gpu['uuid']} {path}: {left} beside {right}")
    compare_instances(gpu, theirs, failures)
    compare_processes(gpu, theirs, failures)


def compare_instances(gpu, theirs, failures):
    left = sorted((i["gpuInstance"], i["computeInstance"]) for i in gpu["mig"]["instances"]
                  if i["computeInstance"] >= 0)
    right = sorted((int(d.findtext("gpu_instance_id")), int(d.findtext("compute_instance_id")))
                   for d in theirs.findall("mig_devices/mig_device"))
    if left != right:
        failures.append(f"{gpu['uuid']} MIG instances: {left} beside {right}")


def compare_processes(gpu, theirs, failures):
    left = {p["pid"] for p in gpu["processes"]}
    right = {int(p.findtext("pid")) for p in theirs.findall("processes/process_info")}
    if not left & right and (left or right):
        failures.append(f"{gpu['uuid']} processes: {sorted(left)} beside {sorted(right)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jogak",
                        default=os.environ.get("JOGAK_BINARY", "build/dev/src/cli/jogak"))
    parser.add_argument("--record", metavar="FILE")
    arguments = parser.parse_args()
    smi = shutil.which("nvidia-smi")
    if smi is None or subprocess.run([smi, "-L"], capture_output=True).returncode != 0:
        print("skipped: no NVIDIA GPU here (nvidia-smi does not find one)")
        return SKIPPED
    inspected = subprocess.run([arguments.jogak, "agent", "inspect", "-o", "json"],
                               capture_output=True, text=True)
    if inspected.returncode != 0:
        print(f"jogak agent inspect: {inspected.stderr.strip()}")
        return 1
    node = json.loads(inspected.stdout)
    root = ElementTree.fromstring(subprocess.run([smi, "-q", "-x"], capture_output=True, check=True,
                                                 text=True).stdout)
    failures = []
    if node["driverVersion"] != root.findtext("driver_version"):
        failures.append(f"driver: {node['driverVersion']} beside {root.findtext('driver_version')}")
    theirs = {gpu.findtext("uuid"): gpu for gpu in root.findall("gpu")}
    if set(theirs) != {gpu["uuid"] for gpu in node["gpus"]}:
        failures.append(f"GPUs: {[gpu['uuid'] for gpu in node['gpus']]} beside {list(theirs)}")
    for gpu in node["gpus"]:
        if gpu["uuid"] in theirs:
            print(gpu["uuid"])
            compare_gpu(gpu, theirs[gpu["uuid"]], failures)
    if arguments.record:
        subprocess.run([arguments.jogak, "agent", "record", arguments.record], check=True)
    for failure in failures:
        print(f"DIFFER {failure}")
    print(f"{len(node['gpus'])} GPUs, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
