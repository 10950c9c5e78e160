# SPDX-License-Identifier: Apache-2.0
#
# What goes when something goes: finalizers, cascades, namespaces. Their pods fit no node, so that
# no kubelet has to end them.

from suite import case, check, contains, equal, eventually


@case()
def finalizers(kubectl, _):
    """An object with a finalizer stays, marked, until the finalizer is taken away"""
    kubectl("create", "cm", "held")
    kubectl("patch", "cm", "held", "--type=merge", "-p",
            '{"metadata":{"finalizers":["e2e.jogak.io/hold"]}}')
    kubectl("delete", "cm", "held", "--wait=false")
    check(kubectl.value("cm/held", ".metadata.deletionTimestamp"), "it is marked")
    kubectl("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl.refused("get", "cm", "held", saying="NotFound")


def idle(kubectl):
    """A deployment with its replica set and two pods that wait."""
    kubectl.apply_file("idle-deployment.yaml")
    eventually("two pods", lambda: len(kubectl.names("pods")) == 2)
    return kubectl.names("replicasets")[0]


@case(needs="controllers")
def owners(kubectl, _):
    """A deployment owns a replica set that owns pods; scaling changes their number"""
    replica_set = idle(kubectl)
    owner = kubectl.value(f"rs/{replica_set}", ".metadata.ownerReferences[0].name")
    equal(owner, "idle", "owner of the replica set")
    pod = kubectl.names("pods")[0]
    equal(kubectl.value(f"pod/{pod}", ".metadata.ownerReferences[0].name"), replica_set,
          "owner of a pod")
    kubectl("scale", "deploy/idle", "--replicas=4")
    eventually("four pods", lambda: len(kubectl.names("pods")) == 4)
    contains(kubectl("get", "deploy", "idle", "--subresource=scale"), "DESIRED", "4")
    kubectl.refused("scale", "deploy/idle", "--replicas=1", "--current-replicas=9",
                    saying="expected replicas")
    kubectl("scale", "deploy/idle", "--replicas=0")
    eventually("no pods", lambda: not kubectl.names("pods"))
    equal(kubectl.value("deploy/idle", ".spec.replicas"), "0", "replicas")


@case(needs="controllers")
def cascade_background(kubectl, _):
    """The owner goes at once, what it owned follows"""
    idle(kubectl)
    kubectl("delete", "deploy", "idle", "--cascade=background")
    eventually("all of it is gone", lambda: not kubectl.names("deploy,rs,pods"))


@case(needs="controllers")
def cascade_foreground(kubectl, _):
    """What is owned goes first, the owner waits for it"""
    replica_set = idle(kubectl)
    kubectl("patch", "rs", replica_set, "--type=json", "-p",
            '[{"op":"add","path":"/metadata/finalizers","value":["e2e.jogak.io/hold"]}]')
    kubectl("delete", "deploy", "idle", "--cascade=foreground", "--wait=false")
    eventually("the pods are gone", lambda: not kubectl.names("pods"))
    contains(kubectl.value("deploy/idle", ".metadata.finalizers"), "foregroundDeletion")
    kubectl("patch", "rs", replica_set, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    eventually("all of it is gone", lambda: not kubectl.names("deploy,rs,pods"))


@case(needs="controllers")
def cascade_orphan(kubectl, _):
    """What was owned stays, without its owner; a new owner adopts it"""
    replica_set = idle(kubectl)
    pods = kubectl.names("pods")
    kubectl("delete", "deploy", "idle", "--cascade=orphan")
    eventually("no owner", lambda: not kubectl.value(
        f"rs/{replica_set}", ".metadata.ownerReferences"))
    equal(kubectl.names("pods"), pods, "pods")
    kubectl.apply_file("idle-deployment.yaml")
    eventually("adopted", lambda: kubectl.value(
        f"rs/{replica_set}", ".metadata.ownerReferences[0].name") == "idle")
    equal(kubectl.names("pods"), pods, "pods after the adoption")


@case(needs="controllers")
def namespace_deletion(kubectl, cluster):
    """A namespace takes everything in it along, and waits for finalizers"""
    name = f"e2e-doomed-{cluster.suffix}"
    kubectl("create", "namespace", name)
    inside = kubectl.inside(name)
    eventually("an account", lambda: inside.names("serviceaccounts"))
    inside("create", "cm", "held")
    inside("patch", "cm", "held", "--type=merge", "-p",
           '{"metadata":{"finalizers":["e2e.jogak.io/hold"]}}')
    inside.apply_file("idle-deployment.yaml")
    eventually("pods", lambda: inside.names("pods"))
    kubectl("delete", "namespace", name, "--wait=false")
    equal(kubectl.value(f"namespace/{name}", ".status.phase"), "Terminating", "phase")
    inside.refused("create", "cm", "late", saying=["Forbidden", "being terminated"])
    eventually("all but the held one is gone", lambda: not inside.names("deploy,rs,pods"))
    eventually("the namespace says what it waits for", lambda: "e2e.jogak.io/hold" in str(
        kubectl.json("get", "namespace", name)["status"].get("conditions")))
    inside("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", f"namespace/{name}", "--timeout=60s")


@case(needs="controllers")
def new_namespace(kubectl, _):
    """A new namespace gets an account and the certificate of the server"""
    eventually("a default account", lambda: "default" in kubectl.names("serviceaccounts"))
    eventually("the certificate", lambda: "kube-root-ca.crt" in kubectl.names("cm"))
    check(kubectl("create", "token", "default").count(".") == 2, "a token has three parts")
