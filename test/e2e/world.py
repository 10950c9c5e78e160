# SPDX-License-Identifier: Apache-2.0
#
# Nodes and pods for cases about scheduling. The nodes are made by the case and have no kubelet, so
# "bound" means that the pod has a node, and the case itself confirms the end of pods. A world's
# pods select its nodes; the other nodes of the cluster only show up as counts in messages.

import datetime
import json

from suite import Failed, check, equal, eventually

LABEL = "e2e.jogak.io/world"
NOT_READY = "node.kubernetes.io/not-ready"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTS = "node(s) had untolerated taint(s)"
UNSCHEDULABLE = "node(s) were unschedulable"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate, "  # said first where dynamic resources are on


def counted(reasons):
    """{reason: nodes} as a scheduler writes it, sorted as text."""
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count))


class World:
    """`with World(kubectl, cluster) as world:`; its nodes and pods go when it ends."""

    def __init__(self, kubectl, cluster):
        self.kubectl = kubectl
        self.scheduler = cluster.scheduler_name
        self.name = kubectl.namespace
        self.own = []
        self.refused = set()  # pods that an event has told about
        self.cleanups = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        run = self.kubectl.run
        run("delete", "pods", "--all", "--force", "--grace-period=0")
        for args in reversed(self.cleanups):
            run("delete", *args, "--ignore-not-found")
        run("delete", "nodes", "-l", f"{LABEL}={self.name}")

    def also_delete(self, *args):
        """Something outside the namespace, deleted at the end."""
        self.cleanups.append(args)

    def node(self, name):
        """The full name of one of its nodes."""
        return f"{self.name}-{name}"

    def add_nodes(self, **nodes):
        """name=fields: labels, taints, and amounts that are allocatable (cpu, memory, pods, gpu)"""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = []
        for name, fields in nodes.items():
            amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
            amounts.update({("nvidia.com/gpu" if key == "gpu" else key): str(fields[key])
                            for key in ("cpu", "memory", "pods", "gpu") if key in fields})
            labels = {LABEL: self.name, "kubernetes.io/hostname": self.node(name),
                      **fields.get("labels", {})}
            items.append({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": self.node(name), "labels": labels},
                "spec": {"taints": fields["taints"]} if "taints" in fields else {},
                "status": {"allocatable": amounts, "capacity": amounts, "conditions": [
                    {"type": "Ready", "status": "True", "reason": "KubeletReady",
                     "lastHeartbeatTime": now, "lastTransitionTime": now}]}})
            self.own.append(self.node(name))
        self.create(*items)
        for node in self.kubectl.json("get", "nodes", "-l", f"{LABEL}={self.name}")["items"]:
            if any(t["key"] == NOT_READY for t in node["spec"].get("taints", [])):
                # admission may give it to every new node; only a kubelet would have it removed
                self.kubectl.run("taint", "node", node["metadata"]["name"], NOT_READY + "-")

    def pod(self, name, cpu=None, gpu=None, node=None, labels=None, **spec):
        """A manifest. `node` binds it at once, as if another had scheduled it."""
        requests = {key: str(value) for key, value in
                    (("cpu", cpu), ("nvidia.com/gpu", gpu)) if value is not None}
        container = {"name": "main", "image": "example/p"}
        if requests:  # a limit gives the request, and an extended resource demands one
            container["resources"] = {"limits": requests}
        whole = {"schedulerName": self.scheduler, "nodeSelector": {LABEL: self.name},
                 "terminationGracePeriodSeconds": 30, "containers": [container], **spec}
        if node:
            whole["nodeName"] = self.node(node)
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": labels or {}}, "spec": whole}

    def create(self, *manifests):
        self.kubectl("create", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": list(manifests)}))

    def run(self, name, **fields):
        self.create(self.pod(name, **fields))

    def get(self, name):
        return self.kubectl.json("get", "pod", name)

    def end(self, *names):
        """What a kubelet does when the containers have stopped."""
        self.kubectl("delete", "pods", *names, "--force", "--grace-period=0")

    def bound(self, *names):
        """{pod: node without the world's name} once all of them have a node"""
        selected = f"pods/{names[0]}" if len(names) == 1 else None

        def read():
            items = [self.get(names[0])] if selected else self.kubectl.json("get", "pods")["items"]
            return {i["metadata"]["name"]: i for i in items if i["metadata"]["name"] in names}

        def all_bound():
            pods = read()
            return pods if all(p["spec"].get("nodeName") for p in pods.values()) else None

        try:
            pods = eventually(f"pods {', '.join(names)} have nodes", all_bound, seconds=30)
        except Failed as reason:
            told = [f"{name}: {condition(pod, 'PodScheduled')}" for name, pod in read().items()
                    if not pod["spec"].get("nodeName")]
            raise Failed(f"{reason}: {'; '.join(told)}") from None
        equal(sorted(pods), sorted(names), "pods")
        for name, pod in pods.items():
            equal(condition(pod, "PodScheduled").get("status"), "True", f"PodScheduled of {name}")
        return {name: pod["spec"]["nodeName"].removeprefix(self.name + "-")
                for name, pod in pods.items()}

    def others(self, tolerations=()):
        """{reason: count} of the nodes that are not the world's, for a pod that selects those"""
        reasons = {}
        tolerated = {t.get("key") for t in tolerations}
        for node in self.kubectl.json("get", "nodes")["items"]:
            if node["metadata"]["name"] in self.own:
                continue
            taints = [t for t in node["spec"].get("taints", [])
                      if t["effect"] != "PreferNoSchedule" and t["key"] not in tolerated]
            reason = (UNSCHEDULABLE if node["spec"].get("unschedulable") else
                      TAINTS if taints else AFFINITY)
            reasons[reason] = reasons.get(reason, 0) + 1
        return reasons

    def message(self, reasons, victims=None, preemption=None, tolerations=()):
        """The text for a pod refused by these {reason: count} of the world's nodes. `victims` are
        those where only victims lack; `preemption` replaces that whole part, "" leaves it out."""
        others = self.others(tolerations)
        total = len(self.own) + sum(others.values())
        for reason, count in reasons.items():
            others[reason] = others.get(reason, 0) + count
        if total == 0:
            return "no nodes available to schedule pods"
        text = f"0/{total} nodes are available: {counted(others)}."
        if preemption is None:
            told = dict(victims or {})
            told[NOT_HELPFUL] = total - sum(told.values())
            preemption = f"preemption: 0/{total} nodes are available: {counted(told)}."
        return f"{text} {preemption}".rstrip()

    def waits(self, name, reasons, **more):
        """The pod is told to be unschedulable with exactly these reasons, in its condition and, the
        first time, in an event; returns the pod."""
        expected = self.message(reasons, **more)
        return self.waits_saying(name, expected)

    def waits_saying(self, name, expected):
        last = {}

        def told():
            last["pod"] = self.get(name)
            last["condition"] = condition(last["pod"], "PodScheduled")
            return last["condition"].get("message", "").replace(NO_CLAIMS, "") == expected

        try:
            eventually(expected, told, seconds=20)
        except Failed:
            raise Failed(f"pod {name}: expected {expected!r}, got "
                         f"{last['condition']}") from None
        found, pod = last["condition"], last["pod"]
        equal((found["status"], found["reason"]), ("False", "Unschedulable"), "condition")
        check(not pod["spec"].get("nodeName"), f"{name} has a node")
        equal(pod["status"]["phase"], "Pending", "phase")
        # kube-scheduler may count a second text as a repetition of the first one's event
        text = {} if name in self.refused else {"message": found["message"]}
        self.refused.add(name)
        self.event(name, "FailedScheduling", type="Warning", **text)
        return pod

    def events(self, name, reason):
        selector = f"involvedObject.name={name},reason={reason}"
        return self.kubectl.json("get", "events", "--field-selector", selector)["items"]

    def event(self, name, reason, **fields):
        """The event with these fields, once it is there."""

        def wanted():
            return [e for e in self.events(name, reason)
                    if all(e.get(key) == value for key, value in fields.items())]

        try:
            return eventually("event", wanted, seconds=20)[0]
        except Failed:
            raise Failed(f"pod {name}: no event {reason} with {fields}, but "
                         f"{self.events(name, reason)}") from None


def condition(pod, kind):
    """One condition of a pod, {} when it has none of that type."""
    return next((c for c in pod["status"].get("conditions", []) if c["type"] == kind), {})
