# SPDX-License-Identifier: Apache-2.0
#
# The cases of nvidia_ml_py_test.py. The binding keeps one library for its process, so each machine
# is tried in a process of its own: this file run with the name of a class.

import ctypes
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

MACHINE = """\
apiVersion: jogak.io/v1
kind: NvmlSimulation
driver: {driverVersion: 550.90.07, cudaMajor: 12, cudaMinor: 4, driverBranch: r550_00}
gpus:
- model: A100-SXM4-40GB
  uuid: GPU-11111111-2222-4333-8444-555555555555
  serial: "1320000000001"
  busId: 00000000:07:00.0
  minor: 5
  numaNode: 1
  cpus: 0-3,64
  migEnabled: true
  migInstances: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 0}]
  processes: [{pid: 4100, name: python3, memoryMib: 1200, instance: 0}]
- model: H100-SXM5-80GB
  busId: 00010000:0F:00.0
  load: {shape: constant, high: 40}
  readings: {temperatureC: 51, powerMw: 312000, memoryTemperatureC: 60}
  counters: {eccCorrectedVolatile: 3, eccUncorrectedAggregate: 2, rowsCorrected: 4, energyMj: 900}
  processes: [{pid: 77, name: train, memoryMib: 2048, smPercent: 12}]
- model: T4
  encoderLoad: {shape: constant, high: 25}
  counters: {retiredSingleBit: 2}
"""

# What an answer that is no value may be: each is documented for some GPU or some argument.
ALLOWED = {"NOT_SUPPORTED", "INVALID_ARGUMENT", "NOT_FOUND", "NO_PERMISSION", "INSUFFICIENT_SIZE",
           "ARGUMENT_VERSION_MISMATCH", "NO_DATA", "TIMEOUT", "FUNCTION_NOT_FOUND"}


def open_library():
    import pynvml
    pynvml.nvmlLib = ctypes.CDLL(os.environ["JOGAK_NVML_SIM_LIBRARY"])
    pynvml.nvmlInit()
    return pynvml


class Values(unittest.TestCase):
    """Getters whose answer the YAML gives."""

    @classmethod
    def setUpClass(cls):
        cls.n = open_library()
        cls.gpus = [cls.n.nvmlDeviceGetHandleByIndex(i) for i in range(3)]

    def test_system(self):
        self.assertEqual(self.n.nvmlSystemGetDriverVersion(), "550.90.07")
        self.assertEqual(self.n.nvmlSystemGetNVMLVersion(), "12.550.90.07")
        self.assertEqual(self.n.nvmlSystemGetCudaDriverVersion(), 12040)
        self.assertEqual(self.n.nvmlSystemGetProcessName(77), "train")
        self.assertEqual(self.n.nvmlDeviceGetCount(), 3)

    def test_identity(self):
        n, gpu = self.n, self.gpus[0]
        self.assertEqual(n.nvmlDeviceGetName(gpu), "NVIDIA A100-SXM4-40GB")
        self.assertEqual(n.nvmlDeviceGetUUID(gpu), "GPU-11111111-2222-4333-8444-555555555555")
        self.assertEqual(n.nvmlDeviceGetSerial(gpu), "1320000000001")
        self.assertEqual(n.nvmlDeviceGetMinorNumber(gpu), 5)
        self.assertEqual(n.nvmlDeviceGetArchitecture(gpu), n.NVML_DEVICE_ARCH_AMPERE)
        self.assertEqual(n.nvmlDeviceGetCudaComputeCapability(gpu), (8, 0) if isinstance(
            n.nvmlDeviceGetCudaComputeCapability(gpu), tuple) else [8, 0])
        self.assertEqual(n.nvmlDeviceGetPciInfo(gpu).busId, "00000000:07:00.0")
        pci = n.nvmlDeviceGetPciInfo(self.gpus[1])
        self.assertEqual((pci.domain, pci.bus, pci.pciDeviceId), (0x10000, 0x0F, 0x233010DE))
        self.assertEqual(n.nvmlDeviceGetIndex(self.gpus[2]), 2)
        same = n.nvmlDeviceGetHandleByUUID("GPU-11111111-2222-4333-8444-555555555555")
        self.assertEqual(n.nvmlDeviceGetIndex(same), 0)
        self.assertEqual(list(n.nvmlDeviceGetCpuAffinity(gpu, 2)), [0b1111, 1])

    def test_memory(self):
        n, gpu = self.n, self.gpus[1]
        old, new = n.nvmlDeviceGetMemoryInfo(gpu), n.nvmlDeviceGetMemoryInfo(
            gpu, n.nvmlMemory_v2)
        self.assertEqual(old.total >> 20, 81559)
        self.assertEqual(new.used >> 20, 2048)
        self.assertEqual(new.total, new.used + new.free + new.reserved)
        self.assertEqual(old.used, new.used + new.reserved)

    def test_readings(self):
        n, gpu = self.n, self.gpus[1]
        self.assertEqual(n.nvmlDeviceGetTemperature(gpu, n.NVML_TEMPERATURE_GPU), 51)
        self.assertEqual(n.nvmlDeviceGetPowerUsage(gpu), 312000)
        self.assertEqual(n.nvmlDeviceGetUtilizationRates(gpu).gpu, 52)
        self.assertEqual(n.nvmlDeviceGetClockInfo(gpu, n.NVML_CLOCK_SM), 1980)
        self.assertEqual(n.nvmlDeviceGetMaxClockInfo(gpu, n.NVML_CLOCK_MEM), 2619)
        self.assertEqual(n.nvmlDeviceGetEnforcedPowerLimit(gpu), 700000)
        self.assertEqual(n.nvmlDeviceGetPowerManagementLimitConstraints(gpu), [200000, 700000])
        self.assertEqual(n.nvmlDeviceGetEncoderUtilization(self.gpus[2])[0], 25)
        self.assertGreaterEqual(n.nvmlDeviceGetTotalEnergyConsumption(gpu), 900)
        fields = n.nvmlDeviceGetFieldValues(gpu, [n.NVML_FI_DEV_MEMORY_TEMP, 9999])
        self.assertEqual((fields[0].nvmlReturn, fields[0].value.uiVal), (0, 60))
        self.assertEqual(fields[1].nvmlReturn, n.NVML_ERROR_NOT_SUPPORTED)

    def test_health(self):
        n, gpu = self.n, self.gpus[1]
        count = n.nvmlDeviceGetTotalEccErrors
        self.assertEqual(count(gpu, n.NVML_MEMORY_ERROR_TYPE_CORRECTED, n.NVML_VOLATILE_ECC), 3)
        self.assertEqual(count(gpu, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_AGGREGATE_ECC), 2)
        self.assertEqual(list(n.nvmlDeviceGetRemappedRows(gpu)), [4, 0, 0, 0])
        self.assertEqual(len(n.nvmlDeviceGetRetiredPages(
            self.gpus[2], n.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)), 2)
        with self.assertRaises(n.NVMLError_NotSupported):
            n.nvmlDeviceGetRemappedRows(self.gpus[2])

    def test_links(self):
        n = self.n
        self.assertEqual(n.nvmlDeviceGetNvLinkState(self.gpus[1], 17), 1)
        with self.assertRaises(n.NVMLError_InvalidArgument):
            n.nvmlDeviceGetNvLinkState(self.gpus[1], 18)
        with self.assertRaises(n.NVMLError_NotSupported):
            n.nvmlDeviceGetNvLinkState(self.gpus[2], 0)
        self.assertEqual(n.nvmlDeviceGetTopologyCommonAncestor(self.gpus[1], self.gpus[2]),
                         n.NVML_TOPOLOGY_SYSTEM)

    def test_processes(self):
        n = self.n
        [process] = n.nvmlDeviceGetComputeRunningProcesses(self.gpus[1])
        self.assertEqual((process.pid, process.usedGpuMemory), (77, 2048 << 20))
        [mig] = n.nvmlDeviceGetComputeRunningProcesses(self.gpus[0])
        self.assertEqual((mig.pid, mig.gpuInstanceId, mig.computeInstanceId), (4100, 1, 0))
        [use] = n.nvmlDeviceGetProcessUtilization(self.gpus[1], 0)
        self.assertEqual((use.pid, use.smUtil), (77, 12))

    def test_mig(self):
        n, gpu = self.n, self.gpus[0]
        self.assertEqual(list(n.nvmlDeviceGetMigMode(gpu)), [1, 1])
        self.assertEqual(n.nvmlDeviceGetMaxMigDeviceCount(gpu), 7)
        found = []
        for index in range(7):
            try:
                mig = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
            except n.NVMLError_NotFound:
                continue
            found.append((n.nvmlDeviceGetGpuInstanceId(mig),
                          n.nvmlDeviceGetAttributes(mig).memorySizeMB,
                          n.nvmlDeviceGetUUID(mig)[:4]))
        self.assertEqual(found, [(1, 19968, "MIG-"), (7, 4864, "MIG-")])
        profile = n.nvmlDeviceGetGpuInstanceProfileInfo(gpu, n.NVML_GPU_INSTANCE_PROFILE_2_SLICE)
        self.assertEqual((profile.id, profile.sliceCount, profile.instanceCount), (14, 2, 3))
        with self.assertRaises(n.NVMLError_NotSupported):
            n.nvmlDeviceGetUtilizationRates(gpu)

    def test_mig_creation(self):
        n, gpu = self.n, self.gpus[0]
        instance = n.nvmlDeviceCreateGpuInstance(gpu, 14)
        compute = n.nvmlGpuInstanceCreateComputeInstance(instance, 1)
        self.assertEqual(n.nvmlGpuInstanceGetInfo(instance).placement.start, 2)
        with self.assertRaises(n.NVMLError_InUse):
            n.nvmlGpuInstanceDestroy(instance)
        n.nvmlComputeInstanceDestroy(compute)
        n.nvmlGpuInstanceDestroy(instance)
        with self.assertRaises(n.NVMLError):
            n.nvmlGpuInstanceGetInfo(instance)


class EveryGetter(unittest.TestCase):
    """Whatever function the binding has for a GPU is called: a value, or a documented refusal."""

    def test_all(self):
        n = open_library()
        gpu = n.nvmlDeviceGetHandleByIndex(1)
        mig = n.nvmlDeviceGetMigDeviceHandleByIndex(n.nvmlDeviceGetHandleByIndex(0), 0)
        names = [name for name, function in inspect.getmembers(n, inspect.isfunction)
                 if name.startswith(("nvmlDeviceGet", "nvmlSystemGet", "nvmlGpmQuery",
                                     "nvmlDeviceIs", "nvmlUnitGet", "nvmlGetExcluded"))]
        self.assertGreater(len(names), 150)
        allowed = {getattr(n, "NVML_ERROR_" + word) for word in ALLOWED}
        answered, wrong = 0, []
        for name in names:
            function = getattr(n, name)
            required = [p for p in inspect.signature(function).parameters.values()
                        if p.default is p.empty]
            of_device = name.startswith(("nvmlDevice", "nvmlGpm"))
            for handle in (gpu, mig) if of_device else (None,):
                first = [handle] if of_device else []
                rest = [0] * (len(required) - len(first))
                try:
                    function(*first, *rest)
                    answered += 1
                except n.NVMLError as error:
                    if error.value not in allowed:
                        wrong.append(f"{name}: {error}")
                except (TypeError, ctypes.ArgumentError, ValueError, AttributeError,
                        AssertionError, KeyError, IndexError):
                    pass  # it wants a struct or a name where this test has a number
        self.assertEqual(wrong, [])
        self.assertGreater(answered, 110, "getters that gave a value")

    def test_every_symbol_of_the_binding_is_there(self):
        import pynvml
        import re
        library = ctypes.CDLL(os.environ["JOGAK_NVML_SIM_LIBRARY"])
        source = pathlib.Path(pynvml.__file__).read_text()
        names = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"', source))
        missing = sorted(name for name in names if not hasattr(library, name))
        self.assertGreater(len(names), 200)
        # A newer binding may know newer functions; those of today are all there.
        self.assertLess(len(missing), 40, missing)


class Faults(unittest.TestCase):
    """A scripted machine: an XID is waited for, a lost GPU says so."""

    def test_all(self):
        n = open_library()
        gpu = n.nvmlDeviceGetHandleByIndex(0)
        other = n.nvmlDeviceGetHandleByIndex(1)
        events = n.nvmlEventSetCreate()
        n.nvmlDeviceRegisterEvents(gpu, n.nvmlEventTypeXidCriticalError, events)
        event = n.nvmlEventSetWait_v2(events, 20_000)
        self.assertEqual((event.eventType, event.eventData), (8, 79))
        with self.assertRaises(n.NVMLError_GpuIsLost):
            n.nvmlDeviceGetPowerUsage(gpu)
        self.assertGreater(n.nvmlDeviceGetPowerUsage(other), 0)
        n.nvmlEventSetFree(events)


LOST = """\
apiVersion: jogak.io/v1
kind: NvmlSimulation
gpus: [{model: T4, count: 2}]
faults: [{kind: lost, at: 2s, gpu: 0}]
"""


def run(arguments, library):
    del arguments
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for case, machine in (("Values", MACHINE), ("EveryGetter", MACHINE), ("Faults", LOST)):
            path = pathlib.Path(folder) / f"{case}.yaml"
            path.write_text(machine)
            environment = dict(os.environ, JOGAK_NVML_SIM=str(path),
                               JOGAK_NVML_SIM_LIBRARY=library)
            failed += subprocess.run([sys.executable, __file__, case], env=environment,
                                     timeout=120).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    unittest.main()
