// SPDX-License-Identifier: Apache-2.0
//
// The values of NVML's enumerations, bits and ids. Plain enumerations of fixed type, so that they
// pass as the uint32_t that abi.h has in signatures and structs.
#pragma once

#include <cstdint>

#include "nvml/abi.h"

namespace jogak::nvml::abi {

enum Brand : Enum {
  kBrandUnknown = 0,
  kBrandQuadro = 1,
  kBrandTesla = 2,
  kBrandNvs = 3,
  kBrandGrid = 4,
  kBrandGeForce = 5,
  kBrandTitan = 6,
  kBrandVapps = 7,
  kBrandVpc = 8,
  kBrandVcs = 9,
  kBrandVws = 10,
  kBrandCloudGaming = 11,
  kBrandQuadroRtx = 12,
  kBrandNvidiaRtx = 13,
  kBrandNvidia = 14,
  kBrandGeForceRtx = 15,
  kBrandTitanRtx = 16,
};
enum Architecture : Enum {
  kArchKepler = 2,
  kArchMaxwell = 3,
  kArchPascal = 4,
  kArchVolta = 5,
  kArchTuring = 6,
  kArchAmpere = 7,
  kArchAda = 8,
  kArchHopper = 9,
  kArchBlackwell = 10,
  kArchRubin = 13,
  kArchUnknown = 0xFFFFFFFFU,
};
enum ClockType : Enum { kClockGraphics = 0, kClockSm = 1, kClockMemory = 2, kClockVideo = 3 };
enum ClockId : Enum {
  kClockCurrent = 0,
  kClockAppTarget = 1,
  kClockAppDefault = 2,
  kClockBoostMax = 3
};
enum TemperatureSensor : Enum { kSensorGpu = 0 };
enum TemperatureThreshold : Enum {
  kThresholdShutdown = 0,
  kThresholdSlowdown = 1,
  kThresholdMemoryMax = 2,
  kThresholdGpuMax = 3,
  kThresholdAcousticMin = 4,
  kThresholdAcousticCurrent = 5,
  kThresholdAcousticMax = 6,
  kThresholdGpsCurrent = 7,
};
enum ComputeMode : Enum {
  kComputeDefault = 0,
  kComputeExclusiveThread = 1,
  kComputeProhibited = 2,
  kComputeExclusiveProcess = 3,
};
inline constexpr Enum kPstateUnknown = 32;
enum MemoryErrorType : Enum { kErrorCorrected = 0, kErrorUncorrected = 1 };
enum EccCounterType : Enum { kEccVolatile = 0, kEccAggregate = 1 };
enum MemoryLocation : Enum {
  kLocationL1 = 0,
  kLocationL2 = 1,
  kLocationDram = 2,
  kLocationRegisterFile = 3,
  kLocationTexture = 4,
  kLocationTextureShm = 5,
  kLocationCbu = 6,
  kLocationSram = 7,
  kLocationCount = 8,
};
enum PageRetirementCause : Enum { kRetiredSingleBit = 0, kRetiredDoubleBit = 1 };
enum PcieUtilCounter : Enum { kPcieTx = 0, kPcieRx = 1 };
enum PerfPolicyType : Enum {
  kPolicyPower = 0,
  kPolicyThermal = 1,
  kPolicySyncBoost = 2,
  kPolicyBoardLimit = 3,
  kPolicyLowUtilization = 4,
  kPolicyReliability = 5,
  kPolicyAppClocks = 10,
  kPolicyBaseClocks = 11,
};
enum SamplingType : Enum {
  kSamplePower = 0,
  kSampleGpu = 1,
  kSampleMemory = 2,
  kSampleEncoder = 3,
  kSampleDecoder = 4,
  kSampleProcessorClock = 5,
  kSampleMemoryClock = 6,
  kSampleModulePower = 7,
  kSampleJpeg = 8,
  kSampleOfa = 9,
};
enum ValueType : Enum {
  kValueDouble = 0,
  kValueUint = 1,
  kValueUlong = 2,
  kValueUlonglong = 3,
  kValueSlonglong = 4,
  kValueInt = 5,
  kValueUshort = 6,
};
enum TopologyLevel : Enum {
  kTopologyInternal = 0,
  kTopologySingle = 10,
  kTopologyMultiple = 20,
  kTopologyHostBridge = 30,
  kTopologyNode = 40,
  kTopologySystem = 50,
};
enum P2pCapsIndex : Enum {
  kP2pRead = 0,
  kP2pWrite = 1,
  kP2pNvlink = 2,
  kP2pAtomics = 3,
  kP2pPci = 4,
  kP2pUnknown = 5,
};
enum P2pStatus : Enum {
  kP2pOk = 0,
  kP2pChipsetNotSupported = 1,
  kP2pGpuNotSupported = 2,
  kP2pTopologyNotSupported = 3,
  kP2pDisabled = 4,
  kP2pNotSupported = 5,
  kP2pStatusUnknown = 6,
};
enum NvlinkCapability : Enum {
  kNvlinkP2p = 0,
  kNvlinkSysmem = 1,
  kNvlinkP2pAtomics = 2,
  kNvlinkSysmemAtomics = 3,
  kNvlinkSliBridge = 4,
  kNvlinkValid = 5,
  kNvlinkCapabilityCount = 6,
};
enum NvlinkErrorCounter : Enum {
  kNvlinkReplay = 0,
  kNvlinkRecovery = 1,
  kNvlinkCrcFlit = 2,
  kNvlinkCrcData = 3,
  kNvlinkEccData = 4,
  kNvlinkErrorCount = 5,
};
enum NvlinkRemoteType : Enum {
  kRemoteGpu = 0,
  kRemoteNpu = 1,
  kRemoteSwitch = 2,
  kRemoteUnknown = 0xFF,
};
enum ProcessMode : Enum {
  kProcessCompute = 0,
  kProcessGraphics = 1,
  kProcessMps = 2,
  kProcessAll = 3
};
enum InforomObject : Enum { kInforomOem = 0, kInforomEcc = 1, kInforomPower = 2 };
enum UuidType : Enum { kUuidNone = 0, kUuidAscii = 1, kUuidBinary = 2 };
enum FabricStateValue : std::uint8_t {
  kFabricNotSupported = 0,
  kFabricNotStarted = 1,
  kFabricInProgress = 2,
  kFabricCompleted = 3,
};
enum FabricHealth : std::uint8_t {
  kFabricHealthNotSupported = 0,
  kFabricHealthy = 1,
  kFabricUnhealthy = 2,
  kFabricLimited = 3,
};

// Bits of event types.
inline constexpr std::uint64_t kEventSingleBitEcc = 0x1, kEventDoubleBitEcc = 0x2,
                               kEventPstate = 0x4, kEventXid = 0x8, kEventClock = 0x10,
                               kEventPowerSource = 0x80, kEventMigConfig = 0x100,
                               kEventSingleBitStorm = 0x200, kEventDramRetirement = 0x400,
                               kEventDramRetirementFailure = 0x800, kEventNonFatalPoison = 0x1000,
                               kEventFatalPoison = 0x2000, kEventGpuUnavailable = 0x4000,
                               kEventRecoveryAction = 0x8000;

// Field ids of nvmlDeviceGetFieldValues that Jogak asks for or simulates.
enum FieldId : Enum {
  kFieldEccSbeVolatile = 3,
  kFieldEccDbeVolatile = 4,
  kFieldEccSbeAggregate = 5,
  kFieldEccDbeAggregate = 6,
  kFieldRetiredSbe = 29,
  kFieldRetiredDbe = 30,
  kFieldRetiredPending = 31,
  kFieldNvlinkCrcFlitTotal = 38,
  kFieldNvlinkCrcDataTotal = 45,
  kFieldNvlinkReplayTotal = 52,
  kFieldNvlinkRecoveryTotal = 59,
  kFieldPerfPolicyPower = 74,
  kFieldPerfPolicyThermal = 75,
  kFieldPerfPolicySyncBoost = 76,
  kFieldPerfPolicyBoardLimit = 77,
  kFieldPerfPolicyLowUtil = 78,
  kFieldPerfPolicyReliability = 79,
  kFieldPerfPolicyAppClocks = 80,
  kFieldPerfPolicyBaseClocks = 81,
  kFieldMemoryTemperature = 82,
  kFieldTotalEnergy = 83,
  kFieldNvlinkSpeedCommon = 90,
  kFieldNvlinkCount = 91,
  kFieldPcieReplay = 94,
  kFieldPcieReplayRollover = 95,
  kFieldNvlinkTxData = 138,
  kFieldNvlinkRxData = 139,
  kFieldNvlinkTxRaw = 140,
  kFieldNvlinkRxRaw = 141,
  kFieldRemappedCorrected = 142,
  kFieldRemappedUncorrected = 143,
  kFieldRemappedPending = 144,
  kFieldRemappedFailure = 145,
  kFieldSwitchConnectedLinks = 147,
  kFieldNvlinkReplayErrors = 161,
  kFieldNvlinkRecoveryErrors = 162,
  kFieldNvlinkCrcErrors = 163,
  kFieldNvlinkSpeed = 164,
  kFieldMigModeWithoutReset = 184,
  kFieldPowerAverage = 185,
  kFieldPowerInstant = 186,
  kFieldPcieTxBytes = 197,
  kFieldPcieRxBytes = 198,
  kFieldNvlink5TxBytes = 202,
  kFieldNvlink5RxBytes = 204,
  kFieldRecoveryAction = 230,
  kFieldSwThermalNs = 269,
  kFieldHwThermalNs = 270,
  kFieldHwBrakeNs = 271,
};

// Constants to ask for a kind of GPU or compute instance; the driver's profile ids are others.
inline constexpr std::uint32_t kGpuInstanceProfiles = 0x12;
inline constexpr std::uint32_t kComputeInstanceProfiles = 9;
inline constexpr std::uint32_t kComputeInstanceRev1 = 7;
inline constexpr std::uint32_t kEngineShared = 0;

// Metric ids of GPM; rates are MiB/s, shares percent.
enum GpmMetricId : Enum {
  kGpmGraphics = 1,
  kGpmSm = 2,
  kGpmOccupancy = 3,
  kGpmInteger = 4,
  kGpmTensor = 5,
  kGpmDfma = 6,
  kGpmHmma = 7,
  kGpmDmma = 8,
  kGpmImma = 9,
  kGpmDram = 10,
  kGpmFp64 = 11,
  kGpmFp32 = 12,
  kGpmFp16 = 13,
  kGpmPcieTx = 20,
  kGpmPcieRx = 21,
  kGpmNvdec0 = 30,
  kGpmNvjpg0 = 40,
  kGpmNvofa0 = 50,
  kGpmNvlinkRx = 60,
  kGpmNvlinkTx = 61,
  // Of link n: received 2n on, sent one more; links from 18 on begin elsewhere.
  kGpmNvlinkRx0 = 62,
  kGpmNvlinkRx18 = 212,
  kGpmMetricCount = 333,
};

}  // namespace jogak::nvml::abi
