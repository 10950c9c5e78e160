# SPDX-License-Identifier: Apache-2.0
#
# The rules of the Container Device Interface for a file, as its specification states them, and what
# a runtime makes of one: problems() judges, apply() edits an OCI configuration.

import os
import re
import stat

VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0",
            "1.1.0")
VENDOR = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$")
HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
EDITS = {"env", "deviceNodes", "mounts", "hooks", "intelRdt", "additionalGids", "netDevices"}
NODE = {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"}
MOUNT = {"hostPath", "containerPath", "options", "type"}
HOOK = {"hookName", "path", "args", "env", "timeout"}
TYPES = {"c": stat.S_ISCHR, "b": stat.S_ISBLK, "p": stat.S_ISFIFO}


def at_least(version, wanted):
    return VERSIONS.index(version) >= VERSIONS.index(wanted)


class Judge:
    def __init__(self, spec):
        self.spec, self.found = spec, []
        self.version = spec.get("cdiVersion")

    def say(self, is_so, where, what):
        if not is_so:
            self.found.append(f"{where}: {what}")
        return is_so

    def known(self, value, names, where):
        self.say(isinstance(value, dict), where, "is no object")
        self.say(set(value) <= names, where, f"unknown fields {sorted(set(value) - names)}")

    def needs(self, version, where):
        self.say(at_least(self.version, version), where, f"needs cdiVersion {version}")

    def absolute(self, value, where):
        self.say(isinstance(value, str) and value.startswith("/"), where,
                 f"{value!r} is no absolute path")

    def judge(self):
        self.known(self.spec, {"cdiVersion", "kind", "annotations", "devices", "containerEdits"},
                   "the file")
        if not self.say(self.version in VERSIONS, "cdiVersion", f"{self.version!r} is no release"):
            return
        vendor, _, kind = self.spec.get("kind", "").partition("/")
        self.say(VENDOR.match(vendor), "kind", f"no vendor {vendor!r}")
        self.say(VENDOR.match(kind), "kind", f"no class {kind!r}")
        if "." in kind:
            self.needs("0.6.0", "kind")
        devices = self.spec.get("devices", [])
        self.say(devices, "devices", "there is none")
        names = [device.get("name", "") for device in devices]
        self.say(len(names) == len(set(names)), "devices", "a name twice")
        for device in devices:
            where = f"device {device.get('name')!r}"
            self.known(device, {"name", "annotations", "containerEdits"}, where)
            self.say(DEVICE.match(device["name"]), where, "this may not be a name")
            if device["name"][:1].isdigit():
                self.needs("0.5.0", where)
            self.say(device.get("containerEdits"), where, "no edits")
            self.edits(device.get("containerEdits", {}), where)
        self.edits(self.spec.get("containerEdits", {}), "all")

    def edits(self, edits, where):
        self.known(edits, EDITS, where)
        for variable in edits.get("env", []):
            self.say(re.match(r"[^=\0]+=[^\0]*$", variable), where, f"env {variable!r}")
        paths = [node.get("path") for node in edits.get("deviceNodes", [])]
        self.say(len(paths) == len(set(paths)), where, "a device node twice")
        for node in edits.get("deviceNodes", []):
            self.known(node, NODE, where)
            self.absolute(node.get("path"), where)
            if "hostPath" in node:
                self.needs("0.5.0", where)
                self.absolute(node["hostPath"], where)
            self.say(set(node.get("permissions", "rwm")) <= set("rwm"), where, "permissions")
        for mount in edits.get("mounts", []):
            self.known(mount, MOUNT, where)
            self.absolute(mount.get("hostPath"), where)
            self.absolute(mount.get("containerPath"), where)
            if "type" in mount:
                self.needs("0.4.0", where)
        for hook in edits.get("hooks", []):
            self.known(hook, HOOK, where)
            self.say(hook.get("hookName") in HOOKS, where, f"hook {hook.get('hookName')!r}")
            self.absolute(hook.get("path"), where)
            self.say(hook.get("timeout", 1) > 0, where, "a hook's timeout")


def problems(spec):
    """What is wrong with a file, a line each; a runtime would take no device of it."""
    judge = Judge(spec)
    judge.judge()
    return judge.found


def apply(config, spec, names):
    """Edits an OCI configuration as a runtime does for these devices: all of the file once, then
    each device; of two of one name the later."""
    chosen = [next(d for d in spec["devices"] if d["name"] == name) for name in names]
    for edits in [spec.get("containerEdits", {}), *(d["containerEdits"] for d in chosen)]:
        env = dict(entry.split("=", 1) for entry in config["process"].setdefault("env", []))
        env.update(entry.split("=", 1) for entry in edits.get("env", []))
        config["process"]["env"] = [f"{name}={value}" for name, value in env.items()]
        for node in edits.get("deviceNodes", []):
            add_node(config["linux"], node)
        for mount in edits.get("mounts", []):
            config["mounts"].append({
                "source": mount["hostPath"], "destination": mount["containerPath"],
                "type": mount.get("type", "bind"), "options": mount.get("options", [])})
        for hook in edits.get("hooks", []):
            config.setdefault("hooks", {}).setdefault(hook["hookName"], []).append(
                {key: value for key, value in hook.items() if key != "hookName"})


def add_node(linux, node):
    """The host is asked only for what the file leaves open."""
    kind, major, minor = (node.get(name) for name in ("type", "major", "minor"))
    if not kind or not major:
        info = os.stat(node.get("hostPath", node["path"]))
        kind = kind or next(t for t, is_it in TYPES.items() if is_it(info.st_mode))
        major, minor = os.major(info.st_rdev), os.minor(info.st_rdev)
    minor = minor or 0
    devices = [one for one in linux.get("devices", []) if one["path"] != node["path"]]
    linux["devices"] = devices + [{"path": node["path"], "type": kind, "major": major,
                                   "minor": minor, "fileMode": 0o666, "uid": 0, "gid": 0}]
    linux.setdefault("resources", {}).setdefault("devices", []).append(
        {"allow": True, "type": kind, "major": major, "minor": minor,
         "access": node.get("permissions", "rwm")})
