#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Reads `jogak sim openb -o json` with the policies fgd and jogak and holds jogak against its
# floors: fixed ones at 100 % arrived, never below FGD at 90, 100 and 130, and half of FGD's
# avoidable waste gone on at least 12 of 17 variants. BOUND: the linear relaxation's allocation at
# 100 % arrived, which no schedule can exceed. Exits 1 if a floor is missed.
# usage: jogak_floors.py [--mix NAME] FILE

import json
import sys

BOUND = {
    "default": 96.90, "cpu050": 96.90, "cpu100": 96.89, "cpu200": 96.89, "cpu250": 96.91,
    "gpushare40": 95.62, "gpushare60": 93.36, "gpushare80": 91.34, "gpushare100": 89.15,
    "multigpu20": 97.32, "multigpu30": 97.67, "multigpu40": 98.00, "multigpu50": 98.33,
    "gpuspec10": 96.85, "gpuspec20": 96.90, "gpuspec25": 96.87, "gpuspec33": 96.36,
}
FLOOR = {"default": 96.0, "gpuspec33": 94.5, "cpu250": 95.3, "gpushare100": 87.6}
HALF_NEEDED = 12
COLUMNS = ("90", "100", "130")


def means(path):
    result = {}
    with open(path, encoding="utf-8") as file:
        for s in json.load(file)["summaries"]:
            columns = s["allocated_percent_at_arrived"]
            row = {c: columns[c]["mean"] for c in COLUMNS}
            row["rate"] = s["pods_per_second"]
            result.setdefault(s["variant"], {})[s["policy"]] = row
    return result


def mix_lines(path, mix):
    for variant, policies in means(path).items():
        parts = []
        for name in ("fgd", "jogak"):
            row = policies[name]
            parts.append(f"{name} " + " / ".join(f"{row[c]:.2f}" for c in COLUMNS))
        print(f"  {variant:12} expecting {mix:12} " + "   ".join(parts))


def floor_table(path):
    missed = []
    halves = 0
    print(f"{'variant':12} {'90 fgd':>7} {'jogak':>7} {'100 fgd':>8} {'jogak':>7} {'bound':>7} "
          f"{'waste gone':>10} {'130 fgd':>8} {'jogak':>7} {'pods/s':>8}")
    for variant, policies in means(path).items():
        fgd, jogak = policies["fgd"], policies["jogak"]
        gone = (jogak["100"] - fgd["100"]) / (BOUND[variant] - fgd["100"])
        halves += gone >= 0.5
        print(f"{variant:12} {fgd['90']:7.2f} {jogak['90']:7.2f} {fgd['100']:8.2f} "
              f"{jogak['100']:7.2f} {BOUND[variant]:7.2f} {gone:10.0%} {fgd['130']:8.2f} "
              f"{jogak['130']:7.2f} {jogak['rate']:8.0f}")
        for c in COLUMNS:
            if jogak[c] < fgd[c] - 1e-9:
                missed.append(f"{variant}: {jogak[c]:.3f} at {c}, FGD {fgd[c]:.3f}")
        if jogak["100"] < FLOOR.get(variant, 0):
            missed.append(f"{variant}: {jogak['100']:.2f} at 100, floor {FLOOR[variant]}")
    print(f"half of the avoidable waste gone on {halves} of {len(BOUND)} variants")
    if halves < HALF_NEEDED:
        missed.append(f"half of the waste gone on {halves} variants, floor {HALF_NEEDED}")
    for line in missed:
        print("MISSED", line)
    return 1 if missed else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "--mix":
        mix_lines(arguments[2], arguments[1])
        return 0
    if len(arguments) != 1:
        print("usage: jogak_floors.py [--mix NAME] FILE", file=sys.stderr)
        return 2
    return floor_table(arguments[0])


if __name__ == "__main__":
    sys.exit(main())
