# SPDX-License-Identifier: Apache-2.0
#
# Small random workloads for compare_schedulers.py: a few nodes, pods that run on them, and pods
# that come one after the other. Everything follows from the seed. Names and selectors are those of
# one of two worlds, "a" or "b", which are the same but for that letter; each pod selects its
# world's nodes. A node of the other world refuses it by taint or by affinity, the same ones in
# both, so that even the counts in messages must agree.

import random

WORLD = "e2e.jogak.io/world"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APPS = ("web", "cache", "batch")
PRIORITY_CLASSES = {"cmp-low": (-10, "PreemptLowerPriority"),
                    "cmp-high": (100, "PreemptLowerPriority"), "cmp-polite": (100, "Never")}
TAINTS = ({"key": "dedicated", "value": "ml", "effect": "NoSchedule"},
          {"key": "dedicated", "value": "web", "effect": "NoExecute"},
          {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
          {"key": "old", "effect": "PreferNoSchedule"})


def namespace(world):
    return f"cmp-{world}"


def other_namespace(world):
    """A second one, with another label, for terms that span namespaces."""
    return f"cmp-{world}-other"


class Workload:
    """One seed's workload; the methods give its objects for one world."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}:{number}")
        self.number = number
        self.nodes = [self.make_node(i) for i in range(self.random.randint(1, 5))]
        self.running = [self.make_running(i) for i in range(self.random.randint(0, 8))]
        self.budgets = [self.make_budget(app) for app in APPS if self.chance(15)]
        self.claims = []
        self.volumes = []
        self.pending = [self.make_pending(i) for i in range(self.random.randint(2, 6))]

    def chance(self, percent):
        return self.random.randrange(100) < percent

    def pick(self, *choices):
        return self.random.choice(choices)

    # Nodes.

    def make_node(self, index):
        labels = {"size": str(self.pick(1, 2, 8, 16))}
        if self.chance(85):
            labels[ZONE] = self.pick("z1", "z2", "z3")
        if self.chance(50):
            labels["disk"] = self.pick("ssd", "hdd")
        amounts = {"cpu": str(self.pick(2, 4, 8)), "memory": self.pick("2Gi", "4Gi", "16Gi"),
                   "pods": str(self.pick(3, 110, 110)), "ephemeral-storage": "10Gi"}
        if self.chance(75):
            amounts["nvidia.com/gpu"] = str(self.pick(1, 2, 4, 8))
        taints = [taint for taint in TAINTS if self.chance(8)]
        return {"name": f"n{index}", "labels": labels, "amounts": amounts, "taints": taints,
                "unschedulable": self.chance(5)}

    def node_name(self, world, node):
        return f"{world}-{node['name']}"

    def node_object(self, world, node):
        labels = {WORLD: world, HOST: self.node_name(world, node), **node["labels"]}
        spec = {key: node[key] for key in ("taints", "unschedulable") if node[key]}
        return {"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": self.node_name(world, node), "labels": labels},
                "spec": spec,
                "status": {"allocatable": node["amounts"], "capacity": node["amounts"]}}

    # Pods.

    def requests(self):
        found = {}
        if self.chance(70):
            found["cpu"] = self.pick("100m", "100m", "500m", "1", "1500m", "3")
        if self.chance(50):
            found["memory"] = self.pick("64Mi", "64Mi", "512Mi", "1Gi", "3Gi", "500m")
        if self.chance(45):
            found["nvidia.com/gpu"] = str(self.pick(1, 1, 1, 2, 4))
        if self.chance(2):
            found["example.com/lens"] = "1"
        if self.chance(10):
            found["ephemeral-storage"] = self.pick("1Gi", "8Gi")
        return found

    def containers(self):
        """One to two containers and sometimes one that runs first, with requests and ports."""
        def one(name):
            limits = self.requests()
            container = {"name": name, "image": "example/p"}
            if limits:
                container["resources"] = {"requests": limits, "limits": {
                    key: value for key, value in limits.items() if "/" in key}}
            return container

        whole = {"containers": [one(f"c{i}") for i in range(2 if self.chance(15) else 1)]}
        if self.chance(12):
            whole["initContainers"] = [one("init")]
            if self.chance(50):
                whole["initContainers"][0]["restartPolicy"] = "Always"
        if self.chance(12):
            port = {"containerPort": 80, "hostPort": self.pick(8080, 9090)}
            if self.chance(30):
                port["hostIP"] = "127.0.0.1"
            if self.chance(20):
                port["protocol"] = "UDP"
            whole["containers"][0]["ports"] = [port]
        return whole

    def labels(self):
        found = {"app": self.pick(*APPS)}
        if self.chance(50):
            found["rev"] = self.pick("1", "2")
        return found

    def selector(self):
        if self.chance(5):
            return {}
        if self.chance(20):
            return {"matchExpressions": [{"key": self.pick("app", "rev"),
                                          "operator": self.pick("Exists", "DoesNotExist")}]}
        if self.chance(20):
            return {"matchExpressions": [{"key": "app", "operator": self.pick("In", "NotIn"),
                                          "values": [self.pick(*APPS)]}]}
        return {"matchLabels": {"app": self.pick(*APPS)}}

    def pod_term(self):
        term = {"topologyKey": self.pick(ZONE, HOST, "disk"), "labelSelector": self.selector()}
        if self.chance(15):
            # all namespaces: only where no node of the other world has the same value
            everywhere = {} if term["topologyKey"] == HOST else {"matchLabels": {"world": "WORLD"}}
            term["namespaceSelector"] = self.pick(
                everywhere, {"matchLabels": {"world": "WORLD", "team": "other"}})
        elif self.chance(10):
            term["namespaces"] = ["OTHER"]
        return term

    def pod_affinity(self, percent):
        found = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            part = {}
            if self.chance(percent):
                part["requiredDuringSchedulingIgnoredDuringExecution"] = [self.pod_term()]
            if self.chance(percent // 2):
                part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": self.pick(1, 50, 100), "podAffinityTerm": self.pod_term()}]
            if part:
                found[kind] = part
        return found

    def node_expression(self):
        key = self.pick("size", "disk", ZONE)
        operator = self.pick("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        expression = {"key": "size" if operator in ("Gt", "Lt") else key, "operator": operator}
        if operator in ("Gt", "Lt"):
            expression["values"] = [self.pick("1", "4", "8")]
        elif operator in ("In", "NotIn"):
            expression["values"] = [self.pick("ssd", "z1", "z2", "2", "8")]
        return expression

    def node_affinity(self):
        found = {}
        if self.chance(20):
            terms = [{"matchExpressions": [self.node_expression()]}
                     for _ in range(self.pick(1, 1, 2))]
            if self.chance(15):
                terms[0]["matchFields"] = [{"key": "metadata.name", "operator": "In",
                                            "values": ["NODE " + self.pick(*self.node_keys())]}]
            found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.chance(15):
            found["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.pick(1, 100), "preference": {
                    "matchExpressions": [self.node_expression()]}}]
        return found

    def node_keys(self):
        return [node["name"] for node in self.nodes]

    def spread(self):
        found = []
        for key in (ZONE, HOST):
            if self.chance(10):
                one = {"maxSkew": self.pick(1, 1, 2), "topologyKey": key,
                       "whenUnsatisfiable": self.pick("DoNotSchedule", "DoNotSchedule",
                                                      "ScheduleAnyway"),
                       "labelSelector": self.selector()}
                if self.chance(25):
                    one["nodeAffinityPolicy"] = self.pick("Honor", "Ignore")
                if self.chance(25):
                    one["nodeTaintsPolicy"] = self.pick("Honor", "Ignore")
                if one["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(20):
                    one["minDomains"] = self.pick(1, 3)
                if self.chance(15):
                    one["matchLabelKeys"] = ["rev"]
                found.append(one)
        return found

    def tolerations(self):
        found = []
        for taint in TAINTS:
            if self.chance(20):
                toleration = {"key": taint["key"]}
                if self.chance(50):
                    toleration["operator"] = "Exists"
                elif "value" in taint:
                    toleration["value"] = taint["value"]
                if self.chance(50):
                    toleration["effect"] = taint["effect"]
                found.append(toleration)
        if self.chance(5):
            found.append({"operator": "Exists"})
        return found

    def make_pod(self, name, affinity_percent):
        spec = {**self.containers(), "nodeSelector": {}}
        affinity = self.pod_affinity(affinity_percent)
        node_affinity = self.node_affinity()
        if node_affinity:
            affinity["nodeAffinity"] = node_affinity
        if affinity:
            spec["affinity"] = affinity
        for key, value in (("topologySpreadConstraints", self.spread()),
                           ("tolerations", self.tolerations())):
            if value:
                spec[key] = value
        if self.chance(10):
            spec["nodeSelector"]["disk"] = "ssd"
        return {"name": name, "labels": self.labels(), "spec": spec,
                "in_other": self.chance(10), "claim": None}

    def make_running(self, index):
        pod = self.make_pod(f"r{index}", 8)
        for key in ("topologySpreadConstraints", "tolerations"):
            pod["spec"].pop(key, None)  # they say nothing to anybody else
        pod["node"] = self.pick(*self.node_keys())
        pod["class"] = self.pick(None, None, "cmp-low", "cmp-low", "cmp-high")
        # Among equals the one that started last goes: all times differ.
        pod["start"] = f"2026-01-{index + 1:02}T0{self.random.randrange(10)}:00:00Z"
        pod["foreign"] = self.chance(30)
        return pod

    def make_pending(self, index):
        pod = self.make_pod(f"p{index}", 15)
        pod["class"] = self.pick(None, None, "cmp-low", "cmp-high", "cmp-high", "cmp-polite")
        pod["start"] = f"2026-02-{index + 1:02}T00:00:00Z"
        if self.chance(8):
            pod["claim"] = self.make_claim(index)
            pod["in_other"] = False
        return pod

    def pod_object(self, world, pod, scheduler, node=None):
        spec = self.of_world(world, pod["spec"])
        spec["nodeSelector"][WORLD] = world
        spec["terminationGracePeriodSeconds"] = 30
        spec["automountServiceAccountToken"] = False
        spec["schedulerName"] = "someone-else" if pod.get("foreign") else scheduler
        if pod["class"]:
            spec["priorityClassName"] = pod["class"]
        if pod["claim"]:
            spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {
                "claimName": pod["claim"]["name"]}}]
        if node:
            spec["nodeName"] = node
        return {"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": pod["name"], "labels": dict(pod["labels"])}, "spec": spec}

    def of_world(self, world, value):
        """A copy with the world's names of nodes and namespaces."""
        if isinstance(value, dict):
            return {key: self.of_world(world, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.of_world(world, inner) for inner in value]
        if value == "WORLD":
            return world
        if value == "OTHER":
            return other_namespace(world)
        if isinstance(value, str) and value.startswith("NODE "):
            return f"{world}-{value[5:]}"
        return value

    def pod_namespace(self, world, pod):
        return other_namespace(world) if pod["in_other"] else namespace(world)

    # Budgets, claims and volumes.

    def make_budget(self, app):
        return {"app": app, "min": self.pick(0, 1, 2)}

    def budget_object(self, budget):
        return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": budget["app"]},
                "spec": {"minAvailable": budget["min"],
                         "selector": {"matchLabels": {"app": budget["app"]}}}}

    def allowed(self, budget):
        """How many the disruption controller lets go while exactly the running pods are there."""
        healthy = sum(1 for pod in self.running
                      if pod["labels"]["app"] == budget["app"] and not pod["in_other"])
        return max(0, healthy - budget["min"])

    def make_claim(self, index):
        claim = {"name": f"w{self.number}-{index}",
                 "kind": self.pick("static", "static", "dynamic", "immediate", "missing")}
        if claim["kind"] == "static":
            # Sizes differ so that one volume is the smallest; each is on one node.
            for size in self.random.sample(range(1, 9), self.random.randint(0, 2)):
                self.volumes.append({"name": f"w{self.number}-{index}-{size}", "size": size,
                                     "node": self.pick(*self.node_keys())})
            claim["size"] = self.pick(1, 3)
        if claim["kind"] != "missing":
            self.claims.append(claim)
        return claim

    def claim_object(self, world, claim):
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim["name"]},
                "spec": {"accessModes": ["ReadWriteOnce"],
                         "storageClassName": f"cmp-{claim['kind']}-{world}",
                         "resources": {"requests": {"storage": f"{claim.get('size', 1)}Gi"}}}}

    def volume_object(self, world, volume):
        host = {"key": HOST, "operator": "In", "values": [f"{world}-{volume['node']}"]}
        return {"apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": f"{world}-{volume['name']}"},
                "spec": {"capacity": {"storage": f"{volume['size']}Gi"},
                         "accessModes": ["ReadWriteOnce"], "local": {"path": "/mnt/e2e"},
                         "storageClassName": f"cmp-static-{world}",
                         "persistentVolumeReclaimPolicy": "Retain",
                         "nodeAffinity": {"required": {
                             "nodeSelectorTerms": [{"matchExpressions": [host]}]}}}}


def storage_classes(world):
    for kind, provisioner, mode in (
            ("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            ("dynamic", "e2e.jogak.io/by-hand", "WaitForFirstConsumer"),
            ("immediate", "e2e.jogak.io/by-hand", "Immediate")):
        yield {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
               "metadata": {"name": f"cmp-{kind}-{world}"}, "provisioner": provisioner,
               "volumeBindingMode": mode}
