# SPDX-License-Identifier: Apache-2.0
#
# Volumes that wait for their first consumer, and what is said when a pod's volumes keep it off all
# nodes. No volume is ever attached: nodes have no kubelet here, and the case plays the provisioner.

import json

from suite import case, check, equal, eventually
from world import World, condition

SELECTED = "volume.kubernetes.io/selected-node"


def storage_class(kubectl, cluster, world, provisioner, mode="WaitForFirstConsumer"):
    name = f"e2e-{world.name}"
    kubectl.apply(json.dumps({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode}))
    world.also_delete("storageclass", name)
    return name


def volume(kubectl, world, name, node, storage, size="1Gi", claim=None):
    """A persistent volume that only one node can use."""
    full = f"{world.name}-{name}"
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [world.node(node)]}
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage, "local": {"path": "/mnt/e2e"},
            "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}}
    if claim:
        spec["claimRef"] = {"namespace": world.name, "name": claim["metadata"]["name"],
                            "uid": claim["metadata"]["uid"]}
    kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": full},
        "spec": spec}))
    world.also_delete("persistentvolume", full, "--wait=false")
    return full


def claim(kubectl, name, storage, size="1Gi"):
    kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage,
                 "resources": {"requests": {"storage": size}}}}))


def using(*claims):
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}}
            for i, name in enumerate(claims)]


@case(needs="controllers,scheduler", alone=True)
def scheduling_volumes_static(kubectl, cluster):
    """A claim that waits is bound with its pod, to a volume that the pod's node can use"""
    with World(kubectl, cluster) as world:
        storage = storage_class(kubectl, cluster, world, "kubernetes.io/no-provisioner")
        world.add_nodes(a={}, b={})
        small = volume(kubectl, world, "small", "b", storage, "1Gi")
        volume(kubectl, world, "large", "b", storage, "5Gi")
        claim(kubectl, "data", storage)
        equal(kubectl.value("pvc/data", ".status.phase"), "Pending", "the claim waits")
        world.run("p", volumes=using("data"))
        equal(world.bound("p"), {"p": "b"}, "node")
        kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/data", "--timeout=30s")
        equal(kubectl.value("pvc/data", ".spec.volumeName"), small, "the smallest that fits")
        # a claim that is bound draws every further pod to where its volume is
        world.run("q", volumes=using("data"))
        equal(world.bound("q"), {"q": "b"}, "node")

        claim(kubectl, "big", storage, "20Gi")
        world.run("waits", volumes=using("big"))
        world.waits("waits", {"node(s) didn't find available persistent volumes to bind": 2})
        big = volume(kubectl, world, "big", "a", storage, "20Gi")
        equal(world.bound("waits"), {"waits": "a"}, "node")
        eventually("the claim is bound",
                   lambda: kubectl.value("pvc/big", ".spec.volumeName") == big)


@case(needs="controllers,scheduler", alone=True)
def scheduling_volumes_provisioned(kubectl, cluster):
    """A provisioner is told the node, and the pod is bound when the volume is there"""
    with World(kubectl, cluster) as world:
        storage = storage_class(kubectl, cluster, world, "e2e.jogak.io/by-hand")
        world.add_nodes(a={"gpu": 1})
        claim(kubectl, "data", storage)
        world.run("p", gpu=1, volumes=using("data"))
        eventually("the node is told", lambda: kubectl.json("get", "pvc", "data")["metadata"].get(
            "annotations", {}).get(SELECTED) == world.node("a"))
        # until then the pod keeps its seat and has no node
        world.run("other", gpu=1)
        eventually("the seat is taken", lambda: "Insufficient nvidia.com/gpu" in condition(
            world.get("other"), "PodScheduled").get("message", ""))
        check(not world.get("p")["spec"].get("nodeName"), "bound without its volume")
        volume(kubectl, world, "made", "a", storage, claim=kubectl.json("get", "pvc", "data"))
        equal(world.bound("p"), {"p": "a"}, "node")


@case(needs="controllers,scheduler", alone=True)
def scheduling_volumes_missing(kubectl, cluster):
    """Claims that are missing or not bound are named, and the pod starts when they are there"""
    with World(kubectl, cluster) as world:
        storage = storage_class(kubectl, cluster, world, "e2e.jogak.io/by-hand", "Immediate")
        world.add_nodes(a={}, b={})
        world.run("p", volumes=using("data"))

        def says(words):
            return lambda: words in condition(world.get("p"), "PodScheduled").get("message", "")

        eventually("the claim is named", says('persistentvolumeclaim "data" not found'))
        claim(kubectl, "data", storage)
        eventually("the claim is not bound",
                   says("pod has unbound immediate PersistentVolumeClaims"))
        volume(kubectl, world, "made", "b", storage, claim=kubectl.json("get", "pvc", "data"))
        equal(world.bound("p"), {"p": "b"}, "node")
