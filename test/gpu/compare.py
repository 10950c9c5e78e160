#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# `jogak agent inspect -o json` and the agent's metrics beside `nvidia-smi -q -x` on a machine with
# an NVIDIA GPU, field by field. What moves between the readings may differ a little; the rest must
# be equal. Without a GPU it says so and exits 77. `--record FILE` keeps a recording of the machine
# as well. `--nvml`, `--smi` and `--node-name` are for the test of this program (compare_test.py).
# usage: test/gpu/compare.py [--jogak PATH] [--record FILE]

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
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
    ("inforomOem", "inforom_version/oem_object", lambda v: v, text_of, 0),
    ("inforomEcc", "inforom_version/ecc_object", lambda v: v, text_of, 0),
    ("inforomPower", "inforom_version/pwr_object", lambda v: v, text_of, 0),
    ("minor", "minor_number", lambda v: v, number, 0),
    ("moduleId", "gpu_module_id", lambda v: v, number, 0),
    ("memoryMib", "fb_memory_usage/total", lambda v: v, number, 0),
    ("bar1Mib", "bar1_memory_usage/total", lambda v: v, number, 0),
    ("graphicsMaxMhz", "max_clocks/graphics_clock", lambda v: v, number, 0),
    ("smMaxMhz", "max_clocks/sm_clock", lambda v: v, number, 0),
    ("memoryMaxMhz", "max_clocks/mem_clock", lambda v: v, number, 0),
    ("videoMaxMhz", "max_clocks/video_clock", lambda v: v, number, 0),
    ("powerLimitMw", "gpu_power_readings/current_power_limit", watts, number, 1),
    ("powerLimitRequestedMw", "gpu_power_readings/requested_power_limit", watts, number, 1),
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


# A metric, the path of nvidia-smi, what one of its units is of ours, and the slack in ours.
METRICS = [
    ("DCGM_FI_DEV_SM_CLOCK", "clocks/sm_clock", 1, 1500),
    ("DCGM_FI_DEV_MEM_CLOCK", "clocks/mem_clock", 1, 3000),
    ("DCGM_FI_DEV_MAX_SM_CLOCK", "max_clocks/sm_clock", 1, 0),
    ("DCGM_FI_DEV_GPU_TEMP", "temperature/gpu_temp", 1, 5),
    ("DCGM_FI_DEV_MEMORY_TEMP", "temperature/memory_temp", 1, 5),
    ("DCGM_FI_DEV_POWER_USAGE", "gpu_power_readings/average_power_draw", 1, 80),
    ("DCGM_FI_DEV_POWER_USAGE_INSTANT", "gpu_power_readings/instant_power_draw", 1, 80),
    ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gpu_power_readings/current_power_limit", 1, 1),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "gpu_power_readings/requested_power_limit", 1, 1),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "gpu_power_readings/default_power_limit", 1, 1),
    ("DCGM_FI_DEV_GPU_UTIL", "utilization/gpu_util", 1, 60),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "utilization/memory_util", 1, 60),
    ("DCGM_FI_DEV_ENC_UTIL", "utilization/encoder_util", 1, 60),
    ("DCGM_FI_DEV_DEC_UTIL", "utilization/decoder_util", 1, 60),
    ("DCGM_FI_DEV_FAN_SPEED", "fan_speed", 1, 10),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pci/replay_counter", 1, 2),
    ("DCGM_FI_DEV_PCIE_LINK_GEN", "pci/pci_gpu_link_info/pcie_gen/current_link_gen", 1, 4),
    ("DCGM_FI_DEV_PCIE_MAX_LINK_GEN", "pci/pci_gpu_link_info/pcie_gen/max_link_gen", 1, 0),
    ("DCGM_FI_DEV_BAR1_TOTAL", "bar1_memory_usage/total", 1, 0),
    ("DCGM_FI_DEV_BAR1_USED", "bar1_memory_usage/used", 1, 64),
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ecc_errors/volatile/dram_correctable", 1, 1),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc_errors/volatile/dram_uncorrectable", 1, 0),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "ecc_errors/aggregate/dram_uncorrectable", 1, 0),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "remapped_rows/remapped_row_corr", 1, 0),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "remapped_rows/remapped_row_unc", 1, 0),
    ("DCGM_FI_DEV_MINOR_NUMBER", "minor_number", 1, 0),
    # Of a GPU that is cut, the instances tell these.
    ("DCGM_FI_DEV_FB_TOTAL", "fb_memory_usage/total", 1, 0),
    ("DCGM_FI_DEV_FB_USED", "fb_memory_usage/used", 1, 64),
    ("DCGM_FI_DEV_FB_FREE", "fb_memory_usage/free", 1, 64),
    ("DCGM_FI_DEV_FB_RESERVED", "fb_memory_usage/reserved", 1, 2),
]
AGENT_STARTS_S = 60
SAMPLE = re.compile(r'^(DCGM_\w+)\{(?:[^"]|"[^"]*")*?UUID="([^"]+)"(.*)\} (\S+)$')


def read_metrics(arguments):
    """By UUID: the metrics of each GPU as a whole, from an agent that serves nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        counters = os.path.join(folder, "counters.csv")
        with open(counters, "w", encoding="utf-8") as file:
            file.writelines(f"{name}, gauge, compared\n" for name, *_ in METRICS)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        agent = subprocess.Popen(
            [arguments.jogak, "agent", "run", "--nvml", arguments.nvml, "--device-plugin=false",
             "--labels", "off", "--kubeconfig", "off", "--collectors", counters,
             "--exporter-address", f"127.0.0.1:{port}",
             "--mig-journal", os.path.join(folder, "journal.json"),
             "--node-name", arguments.node_name],
            stderr=subprocess.PIPE, text=True)
        try:
            return parse_metrics(wait_for_page(agent, port))
        finally:
            agent.terminate()
            agent.communicate()


def wait_for_page(agent, port):
    until = time.monotonic() + AGENT_STARTS_S
    while time.monotonic() < until and agent.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                page = answer.read().decode()
            if "DCGM_FI_DEV_GPU_TEMP{" in page:
                return page
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("jogak agent run: no metrics came")


def parse_metrics(page):
    metrics = {}
    for line in page.splitlines():
        found = SAMPLE.match(line)
        if found and "GPU_I_ID" not in found[3]:
            metrics.setdefault(found[2], {})[found[1]] = float(found[4])
    return metrics


def compare_metrics(uuid, metrics, theirs, is_cut, failures):
    for name, xml_path, scale, slack in METRICS:
        element = theirs.find(xml_path)
        if element is None or (is_cut and "_FB_" in name):
            continue
        right = number(element.text)
        left = metrics.get(name)
        if right is None:
            same = left is None
        else:
            same = left is not None and abs(left - right * scale) <= slack
        print(f"  {'ok   ' if same else 'DIFFER'} {name}: {left} | {right}")
        if not same:
            failures.append(f"{uuid} {name}: {left} beside {right}")


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
    parser.add_argument("--nvml", default="auto")
    parser.add_argument("--smi", default="nvidia-smi")
    parser.add_argument("--node-name", default=socket.gethostname())
    arguments = parser.parse_args()
    smi = shutil.which(arguments.smi)
    if smi is None or subprocess.run([smi, "-L"], capture_output=True).returncode != 0:
        print("skipped: no NVIDIA GPU here (nvidia-smi does not find one)")
        return SKIPPED
    inspected = subprocess.run(
        [arguments.jogak, "agent", "inspect", "-o", "json", "--nvml", arguments.nvml],
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
    metrics = read_metrics(arguments)
    for gpu in node["gpus"]:
        if gpu["uuid"] in theirs:
            print(gpu["uuid"])
            compare_gpu(gpu, theirs[gpu["uuid"]], failures)
            compare_metrics(gpu["uuid"], metrics.get(gpu["uuid"], {}), theirs[gpu["uuid"]],
                            gpu["mig"]["enabled"], failures)
    if arguments.record:
        subprocess.run([arguments.jogak, "agent", "record", arguments.record, "--nvml",
                        arguments.nvml], check=True)
    for failure in failures:
        print(f"DIFFER {failure}")
    print(f"{len(node['gpus'])} GPUs, {len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
