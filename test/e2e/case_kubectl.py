# SPDX-License-Identifier: Apache-2.0
#
# Commands of kubectl that lean on more than one request: discovery, explain, edit, kustomize,
# generators, access reviews, wait, events.

import json
import os

from suite import MANIFESTS, case, check, contains, equal, eventually


@case()
def discovery(kubectl, _):
    """What there is: versions, resources, explain"""
    contains(kubectl("version"), "Client Version", "Server Version")
    contains(kubectl("api-versions"), "apps/v1", "batch/v1", "v1")
    rows = kubectl("api-resources", "--namespaced=true", "--verbs=list,watch", "-o", "name")
    contains(rows, "pods", "deployments.apps", "leases.coordination.k8s.io")
    contains(kubectl("explain", "pod.spec.containers"), "KIND:", "FIELDS:", "image")
    contains(kubectl("explain", "deployment", "--recursive"), "maxSurge")
    kubectl.refused("explain", "pod.spec.nothing", saying="nothing")
    kubectl.refused("get", "nothings", saying="the server doesn't have a resource type")
    contains(kubectl("cluster-info"), "is running at")
    equal(kubectl("get", "--raw", "/readyz"), "ok", "readyz")


@case()
def access_reviews(kubectl, _):
    """auth can-i and whoami"""
    equal(kubectl("auth", "can-i", "create", "pods").strip(), "yes", "can-i")
    contains(kubectl("auth", "can-i", "--list"), "Resources", "Verbs")
    check(json.loads(kubectl("auth", "whoami", "-o", "json"))["status"]["userInfo"]["username"],
          "whoami has a name")


@case()
def edit(kubectl, _):
    """edit changes what the editor changed, and nothing when it changed nothing"""
    kubectl("create", "cm", "c", "--from-literal=colour=blue")
    contains(kubectl("edit", "cm", "c", env={"KUBE_EDITOR": "sed -i s/blue/red/"}), "edited")
    equal(kubectl.value("cm/c", ".data.colour"), "red", "data")
    code, out, err = kubectl.run("edit", "cm", "c", env={"KUBE_EDITOR": "true"})
    equal(code, 0, "exit code of an edit without changes")
    contains(out + err, "no changes made")


@case()
def kustomize(kubectl, _):
    """apply -k and delete -k"""
    folder = os.path.join(MANIFESTS, "kustomize")
    kubectl("apply", "-k", folder)
    equal(kubectl.names("services", "-l", "stage=dev"), ["dev-front"], "services")
    maps = kubectl.names("cm", "-l", "stage=dev")
    check(len(maps) == 1 and maps[0].startswith("dev-settings-"), f"config maps {maps}")
    equal(kubectl.run("diff", "-k", folder)[0], 0, "diff -k")
    kubectl("delete", "-k", folder)
    equal(kubectl.names("services,cm", "-l", "stage=dev"), [], "after delete -k")


@case()
def generators(kubectl, _):
    """create and its many forms"""
    kubectl("create", "secret", "generic", "s", "--from-literal=password=secret")
    equal(kubectl.value("secret/s", ".data.password"), "c2VjcmV0", "secret")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "reads", "--role=reader",
            f"--serviceaccount={kubectl.namespace}:robot")
    contains(kubectl("describe", "rolebinding", "reads"), "reader", "robot")
    kubectl("create", "service", "clusterip", "svc", "--tcp=80:8080")
    kubectl("create", "service", "nodeport", "np", "--tcp=80")
    port = int(kubectl.value("service/np", ".spec.ports[0].nodePort"))
    check(30000 <= port <= 32767, f"node port {port}")
    kubectl("create", "ingress", "in", "--rule=example.com/*=svc:80")
    contains(kubectl("get", "ingress", "in"), "example.com")
    kubectl("create", "pdb", "budget", "--selector=app=x", "--max-unavailable=1")
    contains(kubectl("get", "pdb", "budget"), "budget", "N/A")
    contains(kubectl("get", "secret,serviceaccount,role,service"), "secret/s", "service/svc")


@case()
def replace_force(kubectl, _):
    """replace --force makes another object of the same name"""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '%s'}"
    kubectl.apply(text % "1")
    uid = kubectl.value("cm/c", ".metadata.uid")
    kubectl("replace", "--force", "-f", "-", stdin=text % "2")
    equal(kubectl.value("cm/c", ".data.a"), "2", "data")
    check(kubectl.value("cm/c", ".metadata.uid") != uid, "another uid")


@case(needs="controllers")
def set_and_autoscale(kubectl, _):
    """set, autoscale and scale change a deployment"""
    kubectl.apply_file("idle-deployment.yaml")
    kubectl("set", "image", "deploy/idle", "main=example/idle:2")
    kubectl("set", "env", "deploy/idle", "COLOUR=blue")
    kubectl("set", "resources", "deploy/idle", "--limits=cpu=200m")
    kubectl("set", "serviceaccount", "deploy/idle", "default")
    container = kubectl.json("get", "deploy", "idle")["spec"]["template"]["spec"]["containers"][0]
    equal(container["image"], "example/idle:2", "image")
    check({"name": "COLOUR", "value": "blue"} in container["env"], f"env {container['env']}")
    equal(container["resources"]["limits"]["cpu"], "200m", "limit")
    kubectl("autoscale", "deploy", "idle", "--min=1", "--max=3")
    contains(kubectl("get", "hpa", "idle"), "Deployment/idle", "3")
    contains(kubectl("describe", "deploy", "idle"), "example/idle:2", "RollingUpdateStrategy")
    contains(kubectl("get", "all"), "deployment.apps/idle", "replicaset.apps/idle-")
    eventually("an event", lambda: "ScalingReplicaSet" in kubectl(
        "events", "--for", "deployment/idle"))
    contains(kubectl("get", "events", "--sort-by=.metadata.creationTimestamp"),
             "ScalingReplicaSet")


@case()
def wait_forms(kubectl, _):
    """wait for a value, for a deletion, and not for ever"""
    kubectl("create", "cm", "c", "--from-literal=a=1")
    kubectl("wait", "--for=jsonpath={.data.a}=1", "cm/c", "--timeout=10s")
    kubectl.refused("wait", "--for=jsonpath={.data.a}=2", "cm/c", "--timeout=1s",
                    saying="timed out")
    kubectl("delete", "cm", "c", "--wait=false")
    kubectl("wait", "--for=delete", "cm/c", "--timeout=10s")
