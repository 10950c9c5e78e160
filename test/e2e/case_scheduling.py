# SPDX-License-Identifier: Apache-2.0
#
# What users of Kubernetes know of its scheduler: where pods may go, what is said when they cannot,
# what happens to them then. The nodes are the case's own; which scheduler answers is a parameter of
# the suite. Where several nodes would do the cases do not ask which was taken.

import json

from suite import case, check, contains, equal, eventually
from world import (AFFINITY, LABEL, NO_VICTIMS, NOT_HELPFUL, TAINTS, UNSCHEDULABLE, World,
                   condition)

GPU = "Insufficient nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def selecting(world, **labels):
    """The world's node selector and these labels."""
    return {LABEL: world.name, **{key.replace("__", "/"): value for key, value in labels.items()}}


def node_affinity(world, *expressions, fields=()):
    term = {"matchExpressions": [{"key": LABEL, "operator": "In", "values": [world.name]},
                                 *expressions]}
    if fields:
        term["matchFields"] = list(fields)
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [term]}}}


def pod_term(key, **labels):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def near(*terms):
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms):
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


@case(needs="controllers,scheduler", alone=True)
def scheduling_binds(kubectl, cluster):
    """A pod that fits gets a node, the condition PodScheduled and the event Scheduled"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={})
        world.run("p", cpu="100m")
        equal(world.bound("p"), {"p": "a"}, "node")
        pod = world.get("p")
        found = condition(pod, "PodScheduled")
        check(found.get("lastTransitionTime"), f"a time of transition: {found}")
        check(not found.get("reason"), f"no reason: {found}")
        check(not pod["status"].get("nominatedNodeName"), "no nomination")
        event = world.event("p", "Scheduled", type="Normal", action="Binding",
                            reportingComponent=cluster.scheduler_name)
        equal(event["message"], f"Successfully assigned {world.name}/p to {world.node('a')}",
              "message")
        equal(event["involvedObject"]["uid"], pod["metadata"]["uid"], "uid")
        check(event["reportingInstance"].startswith(cluster.scheduler_name + "-"),
              f"reportingInstance {event['reportingInstance']}")
        check(event.get("eventTime"), "eventTime")
        contains(kubectl("describe", "pod", "p"), "Successfully assigned", "PodScheduled")
        contains(kubectl("get", "pod", "p", "-o", "wide"), world.node("a"))


@case(needs="controllers,scheduler", alone=True)
def scheduling_counts_requests(kubectl, cluster):
    """Requests are counted, whoever made them; what is short is named; what is freed is used"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={"gpu": 2}, b={"gpu": 1, "cpu": "1", "memory": "1Gi"})
        # one that another scheduler placed, and one of whose end nobody has told
        world.create(world.pod("foreign", gpu=1, node="a", schedulerName="someone-else"))
        world.create(world.pod("one", gpu=1), world.pod("two", gpu=1))
        equal(sorted(world.bound("one", "two").values()), ["a", "b"], "nodes")
        world.run("three", gpu=1)
        pod = world.waits("three", {GPU: 2}, victims={NO_VICTIMS: 2})
        check(not pod["status"].get("nominatedNodeName"), "no nomination")
        equal(condition(pod, "PodScheduled").get("observedGeneration", 1), 1, "generation")
        event = world.event("three", "FailedScheduling", action="Scheduling",
                            reportingComponent=cluster.scheduler_name)
        equal(event["involvedObject"]["kind"], "Pod", "kind")
        # more than a node ever has: no victim could help
        world.run("huge", gpu=3)
        world.waits("huge", {GPU: 2})
        world.run("wide", cpu="9", gpu=3)
        world.waits("wide", {GPU: 2, "Insufficient cpu": 2})
        kubectl("delete", "pod", "foreign", "--wait=false")
        check(not world.get("three")["spec"].get("nodeName"), "a pod counts until it is gone")
        world.end("foreign")
        equal(world.bound("three"), {"three": "a"}, "node")


@case(needs="controllers,scheduler", alone=True)
def scheduling_counts_pods(kubectl, cluster):
    """A node takes as many pods as it says; unknown resources are on no node"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={"pods": 1})
        world.run("first")
        world.bound("first")
        world.run("second")
        world.waits("second", {"Too many pods": 1}, victims={NO_VICTIMS: 1})
        other = world.pod("unknown")
        other["spec"]["containers"][0]["resources"] = {"limits": {"example.com/lens": "1"}}
        world.create(other)
        world.waits("unknown", {"Insufficient example.com/lens": 1, "Too many pods": 1})


@case(needs="controllers,scheduler", alone=True)
def scheduling_node_affinity(kubectl, cluster):
    """Selectors and node affinity choose nodes; a label given later lets a pod in"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={"labels": {"size": "4", "disk": "ssd"}}, b={"labels": {"size": "16"}},
                        c={})
        name = [{"key": "metadata.name", "operator": "In", "values": [world.node("c")]}]
        world.create(
            world.pod("selector", nodeSelector=selecting(world, disk="ssd")),
            world.pod("greater", affinity=node_affinity(
                world, {"key": "size", "operator": "Gt", "values": ["4"]})),
            world.pod("absent", affinity=node_affinity(
                world, {"key": "size", "operator": "DoesNotExist"})),
            world.pod("not-in", affinity=node_affinity(
                world, {"key": "size", "operator": "Exists"},
                {"key": "disk", "operator": "NotIn", "values": ["ssd"]})),
            world.pod("by-name", affinity=node_affinity(world, fields=name)))
        equal(world.bound("selector", "greater", "absent", "not-in", "by-name"),
              {"selector": "a", "greater": "b", "absent": "c", "not-in": "b", "by-name": "c"},
              "nodes")
        world.run("late", nodeSelector=selecting(world, disk="tape"))
        world.waits("late", {AFFINITY: 3})
        kubectl("label", "node", world.node("b"), "disk=tape")
        equal(world.bound("late"), {"late": "b"}, "node")


@case(needs="controllers,scheduler", alone=True)
def scheduling_taints(kubectl, cluster):
    """Taints keep pods off unless tolerated, and so does a cordon; both can be taken away"""
    with World(kubectl, cluster) as world:
        taint = {"key": "e2e", "value": "x", "effect": "NoSchedule"}
        world.add_nodes(a={"taints": [taint]},
                        b={"taints": [dict(taint, effect="NoExecute")]},
                        c={"taints": [dict(taint, effect="PreferNoSchedule")], "pods": 1})
        tolerations = [dict(taint, operator="Equal")]
        world.run("soft")
        equal(world.bound("soft"), {"soft": "c"}, "node")
        world.run("tolerant", tolerations=tolerations)
        equal(world.bound("tolerant"), {"tolerant": "a"}, "node")
        world.run("intolerant")
        world.waits("intolerant", {TAINTS: 2, "Too many pods": 1}, victims={NO_VICTIMS: 1})
        kubectl("taint", "node", world.node("b"), "e2e-")
        equal(world.bound("intolerant"), {"intolerant": "b"}, "node")
        kubectl("cordon", world.node("b"))
        world.run("late")
        world.waits("late", {TAINTS: 1, "Too many pods": 1, UNSCHEDULABLE: 1},
                    victims={NO_VICTIMS: 1})
        kubectl("uncordon", world.node("b"))
        equal(world.bound("late"), {"late": "b"}, "node")


@case(needs="controllers,scheduler", alone=True)
def scheduling_pod_affinity(kubectl, cluster):
    """Pods that want to be apart or together, both ways round"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={"labels": {ZONE: "z1"}}, b={"labels": {ZONE: "z2"}})
        alone = apart(pod_term(HOST, app="web"))
        world.create(*(world.pod(name, labels={"app": "web"}, affinity=alone)
                       for name in ("web-1", "web-2")))
        nodes = world.bound("web-1", "web-2")
        equal(sorted(nodes.values()), ["a", "b"], "one web on each node")
        world.run("web-3", labels={"app": "web"}, affinity=alone)
        world.waits("web-3", {"node(s) didn't match pod anti-affinity rules": 2},
                    victims={NO_VICTIMS: 2})
        world.run("plain", labels={"app": "web"})
        world.waits("plain", {"node(s) didn't satisfy existing pods anti-affinity rules": 2},
                    victims={NO_VICTIMS: 2})
        world.run("lonely", affinity=near(pod_term(ZONE, app="cache")))
        world.waits("lonely", {"node(s) didn't match pod affinity rules": 2})
        # the first of a group that wants its like near is let in
        world.run("cache", labels={"app": "cache"}, affinity=near(pod_term(ZONE, app="cache")))
        place = world.bound("cache")["cache"]
        equal(world.bound("lonely"), {"lonely": place}, "follows")
        gone = next(name for name in nodes if nodes[name] != place)
        world.end(gone)
        eventually("one of the two that waited is let in", lambda: any(
            world.get(name)["spec"].get("nodeName") for name in ("web-3", "plain")))


@case(needs="controllers,scheduler", alone=True)
def scheduling_spread(kubectl, cluster):
    """Topology spread keeps the skew, counts full zones, and demands the label"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={"labels": {ZONE: "z1"}}, b={"labels": {ZONE: "z1"}},
                        c={"labels": {ZONE: "z2"}, "gpu": 2}, d={})
        spread = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
                   "labelSelector": {"matchLabels": {"app": "s"}}}]

        def pod(name, **more):
            return world.pod(name, labels={"app": "s"}, topologySpreadConstraints=spread, **more)

        names = [f"s{i}" for i in range(4)]
        world.create(*(pod(name) for name in names))
        zones = [{"a": 1, "b": 1, "c": 2}[node] for node in world.bound(*names).values()]
        equal(sorted(zones), [1, 1, 2, 2], "zones")
        world.create(pod("gpu-1", gpu=1))
        equal(world.bound("gpu-1"), {"gpu-1": "c"}, "node")
        world.create(pod("gpu-2", gpu=1))
        world.waits("gpu-2", {
            # filters go on to the next only where the one before said yes
            GPU: 3, "node(s) didn't match pod topology spread constraints": 1,
        }, victims={NO_VICTIMS: 1})
        world.create(pod("more"))
        check(world.bound("more")["more"] in ("a", "b"), "the smaller zone")
        world.end("more")
        world.create(pod("on-d", nodeSelector={HOST: world.node("d")}))
        missing = "node(s) didn't match pod topology spread constraints (missing required label)"
        world.waits("on-d", {AFFINITY: 3, missing: 1})


@case(needs="controllers,scheduler", alone=True)
def scheduling_ports(kubectl, cluster):
    """Host ports are given once a node, by address and protocol"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={})

        def pod(name, **port):
            manifest = world.pod(name)
            manifest["spec"]["containers"][0]["ports"] = [{"containerPort": 80, **port}]
            return manifest

        world.create(pod("tcp", hostPort=8080), pod("udp", hostPort=8080, protocol="UDP"),
                     pod("local", hostPort=9090, hostIP="127.0.0.1"))
        world.bound("tcp", "udp", "local")
        world.create(pod("again", hostPort=8080, hostIP="127.0.0.1"))
        taken = {"node(s) didn't have free ports for the requested pod ports": 1}
        world.waits("again", taken, victims={NO_VICTIMS: 1})
        world.create(pod("any", hostPort=9090))
        world.waits("any", taken, victims={NO_VICTIMS: 1})
        world.end("tcp")
        world.bound("again")


@case(needs="controllers,scheduler", alone=True)
def scheduling_gates(kubectl, cluster):
    """A gated pod is left alone until its last gate goes"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={})
        gates = [{"name": "example.com/one"}, {"name": "example.com/two"}]
        world.run("gated", schedulingGates=gates)
        found = condition(world.get("gated"), "PodScheduled")
        equal((found["status"], found["reason"], found["message"]),
              ("False", "SchedulingGated",
               "Scheduling is blocked due to non-empty scheduling gates"), "condition")
        contains(kubectl("get", "pod", "gated"), "SchedulingGated")
        kubectl("patch", "pod", "gated", "--type=merge", "-p",
                json.dumps({"spec": {"schedulingGates": gates[1:]}}))
        world.run("later")  # whoever binds it has seen the gated one
        world.bound("later")
        check(not world.get("gated")["spec"].get("nodeName"), "it is bound behind its gate")
        equal(world.events("gated", "FailedScheduling"), [], "events")
        kubectl("patch", "pod", "gated", "--type=merge", "-p",
                '{"spec":{"schedulingGates":null}}')
        equal(world.bound("gated"), {"gated": "a"}, "node")


@case(needs="controllers,scheduler", alone=True)
def scheduling_foreign_pods(kubectl, cluster):
    """A pod of another scheduler's is neither bound nor spoken to"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={})
        world.create(world.pod("foreign", schedulerName="e2e-nobody"),
                     world.pod("foreign-huge", cpu="900", schedulerName="e2e-nobody"))
        world.run("ours")
        world.bound("ours")
        world.run("ours-huge", cpu="900")
        world.waits("ours-huge", {"Insufficient cpu": 1})
        for name in ("foreign", "foreign-huge"):
            pod = world.get(name)
            check(not pod["spec"].get("nodeName"), f"{name} is bound")
            equal(pod["status"].get("conditions", []), [], f"conditions of {name}")
        equal([e["message"] for e in kubectl.json("get", "events")["items"]
               if e["involvedObject"]["name"].startswith("foreign")], [], "events")


@case(needs="controllers,scheduler", alone=True)
def scheduling_node_arrives(kubectl, cluster):
    """A pod that fits nowhere is bound when a node arrives that it fits"""
    with World(kubectl, cluster) as world:
        world.run("early", gpu=4)
        world.waits("early", {})
        world.add_nodes(small={"gpu": 2})
        world.waits("early", {GPU: 1})
        world.add_nodes(large={"gpu": 8})
        equal(world.bound("early"), {"early": "large"}, "node")


@case(needs="controllers,scheduler", alone=True)
def scheduling_node_grows(kubectl, cluster):
    """A node that gains devices takes a pod that waited; one that goes takes none"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={})
        world.run("p", gpu=1)
        world.waits("p", {GPU: 1})
        kubectl("patch", "node", world.node("a"), "--subresource=status", "--type=merge", "-p",
                json.dumps({"status": {"capacity": {"nvidia.com/gpu": "1"},
                                       "allocatable": {"nvidia.com/gpu": "1"}}}))
        equal(world.bound("p"), {"p": "a"}, "node")
        kubectl("delete", "node", world.node("a"))
        world.own.remove(world.node("a"))
        world.run("q")
        world.waits("q", {})


def priority_classes(kubectl, cluster, world):
    """Three classes for this case: low, high, and high without preemption."""
    names = [f"e2e-{level}-{cluster.suffix}" for level in ("low", "high", "polite")]
    for name, value, policy in zip(names, ("-10", "1000", "1000"),
                                   ("PreemptLowerPriority", "PreemptLowerPriority", "Never")):
        kubectl("create", "priorityclass", name, "--value=" + value,
                "--preemption-policy=" + policy)
        world.also_delete("priorityclass", name)
    return names


@case(needs="controllers,scheduler", alone=True)
def scheduling_preemption(kubectl, cluster):
    """A pod of higher priority takes the place of as few others as it needs, and says so"""
    with World(kubectl, cluster) as world:
        low, high, polite = priority_classes(kubectl, cluster, world)
        world.add_nodes(a={"gpu": 4})
        world.create(*(world.pod(name, gpu=2, priorityClassName=low) for name in ("l1", "l2")))
        world.bound("l1", "l2")
        world.run("polite", gpu=2, priorityClassName=polite)
        world.waits("polite", {GPU: 1},
                    preemption="preemption: not eligible due to preemptionPolicy=Never.")
        kubectl("delete", "pod", "polite", "--force", "--grace-period=0")

        world.run("urgent", gpu=2, priorityClassName=high)
        eventually("a nomination", lambda: world.get("urgent")["status"].get(
            "nominatedNodeName") == world.node("a"))
        pods = eventually("a victim", lambda: [
            p for p in kubectl.json("get", "pods")["items"]
            if p["metadata"].get("deletionTimestamp")])
        equal(len(pods), 1, "victims")
        victim = pods[0]["metadata"]["name"]
        equal(pods[0]["metadata"]["deletionGracePeriodSeconds"], 30, "grace")
        found = condition(pods[0], "DisruptionTarget")
        equal((found["status"], found["reason"], found["message"]),
              ("True", "PreemptionByScheduler", f"{cluster.scheduler_name}: preempting to "
               "accommodate a higher priority pod"), "DisruptionTarget")
        event = world.event(victim, "Preempted", type="Normal", action="Preempting",
                            reportingComponent=cluster.scheduler_name)
        equal(event["message"], f"Preempted by pod {world.get('urgent')['metadata']['uid']} "
              f"on node {world.node('a')}", "message")
        check(not world.get("urgent")["spec"].get("nodeName"), "bound before the victim is gone")
        # it says why it could not start; nothing needs to be said of preemption
        world.waits("urgent", {GPU: 1}, preemption="")

        # whoever is no more important does not get the place that becomes free
        world.run("late", gpu=2, priorityClassName=low)
        world.end(victim)
        equal(world.bound("urgent"), {"urgent": "a"}, "node")
        check(not world.get("urgent")["status"].get("nominatedNodeName"), "nomination cleared")
        world.waits("late", {GPU: 1}, victims={NO_VICTIMS: 1})


@case(needs="controllers,scheduler", alone=True)
def scheduling_preemption_budget(kubectl, cluster):
    """Among victims those whose budget is used up are spared"""
    with World(kubectl, cluster) as world:
        low, high, _ = priority_classes(kubectl, cluster, world)
        world.add_nodes(a={"gpu": 1}, b={"gpu": 1}, c={"gpu": 1})
        kubectl("create", "pdb", "all", "--selector=app=guarded", "--max-unavailable=0")
        for name, node, app in (("guarded-1", "a", "guarded"), ("free", "b", "free"),
                                ("guarded-2", "c", "guarded")):
            world.run(name, gpu=1, labels={"app": app}, priorityClassName=low,
                      nodeSelector=selecting(world, **{HOST.replace("/", "__"):
                                                       world.node(node)}))
        world.bound("guarded-1", "free", "guarded-2")
        eventually("the budget is known", lambda: kubectl.value(
            "pdb/all", ".status.observedGeneration"))
        world.run("urgent", gpu=1, priorityClassName=high)
        eventually("a victim", lambda: world.get("free")["metadata"].get("deletionTimestamp"))
        equal(world.get("urgent")["status"].get("nominatedNodeName"), world.node("b"), "nominated")
        world.end("free")
        equal(world.bound("urgent"), {"urgent": "b"}, "node")
        for name in ("guarded-1", "guarded-2"):
            check(not world.get(name)["metadata"].get("deletionTimestamp"), f"{name} goes too")


@case(needs="controllers,scheduler", alone=True)
def scheduling_deployment(kubectl, cluster):
    """The pods of a controller are bound as it makes them, and its scale finds the limit"""
    with World(kubectl, cluster) as world:
        world.add_nodes(a={"gpu": 2}, b={"gpu": 2})
        template = world.pod("t", gpu=1, labels={"app": "d"})
        # an end that takes no time, so that scaling down needs no kubelet
        template["spec"]["terminationGracePeriodSeconds"] = 0
        kubectl.apply(json.dumps({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "d"}}, "template": {
                "metadata": {"labels": {"app": "d"}}, "spec": template["spec"]}}}))

        def placed():
            return sorted(p["spec"].get("nodeName", "").removeprefix(world.name + "-")
                          for p in kubectl.json("get", "pods", "-l", "app=d")["items"])

        eventually("four have a node", lambda: placed() == ["", "a", "a", "b", "b"])
        waiting = next(p["metadata"]["name"] for p in kubectl.json(
            "get", "pods", "-l", "app=d")["items"] if not p["spec"].get("nodeName"))
        world.waits(waiting, {GPU: 2}, victims={NO_VICTIMS: 2})
        world.add_nodes(c={"gpu": 1})
        eventually("the fifth has one", lambda: placed() == ["a", "a", "b", "b", "c"])
        kubectl("delete", "deploy", "d")
        eventually("all are gone", lambda: not placed())


@case(needs="controllers,scheduler", alone=True)
def scheduling_no_help(kubectl, cluster):
    """Preemption is not tried where no victim could help"""
    with World(kubectl, cluster) as world:
        low, high, _ = priority_classes(kubectl, cluster, world)
        world.add_nodes(a={"gpu": 1}, b={"gpu": 1, "labels": {"kind": "other"}})
        world.create(*(world.pod(name, gpu=1, priorityClassName=low) for name in ("l1", "l2")))
        world.bound("l1", "l2")
        world.run("urgent", gpu=2, priorityClassName=high)
        world.waits("urgent", {GPU: 2})
        world.run("choosy", gpu=1, priorityClassName=high,
                  nodeSelector=selecting(world, kind="none"))
        world.waits("choosy", {AFFINITY: 2})
        for name in ("l1", "l2"):
            check(not world.get(name)["metadata"].get("deletionTimestamp"), f"{name} goes")
        contains(condition(world.get("choosy"), "PodScheduled")["message"], NOT_HELPFUL)
