# SPDX-License-Identifier: Apache-2.0
#
# Workloads on simulated nodes: pods run and end, deployments roll out and back, jobs complete,
# services find their pods.

import json
import os

from suite import EXAMPLES, case, check, contains, equal, eventually


@case(needs="controllers,simulated")
def pod_runs(kubectl, _):
    """A pod is scheduled, starts, says so, and can be read about"""
    kubectl.apply_file("pod.yaml")
    kubectl("wait", "--for=condition=Ready", "pod/small", "--timeout=60s")
    pod = kubectl.json("get", "pod", "small")
    equal(pod["status"]["phase"], "Running", "phase")
    check(pod["spec"].get("nodeName"), "it has a node")
    check(pod["status"].get("podIP"), "it has an address")
    check("running" in pod["status"]["containerStatuses"][0]["state"], "its container runs")
    contains(kubectl("get", "pod", "small", "-o", "wide"), "1/1", "Running",
             pod["status"]["podIP"], pod["spec"]["nodeName"])
    contains(kubectl("describe", "pod", "small"), "Scheduled", "Successfully assigned",
             "Pulled", "Started")
    contains(kubectl("logs", "small"), "simulated")
    equal(kubectl.names("pods", "--field-selector", "status.phase=Running"), ["small"],
          "field selector")
    kubectl("delete", "pod", "small")
    contains(kubectl("get", "events", "--field-selector=involvedObject.name=small"), "Killing")
    kubectl.refused("get", "pod", "small", saying="NotFound")


@case(needs="controllers,simulated")
def pod_ends_with_grace(kubectl, _):
    """A pod that ignores SIGTERM uses its grace period; force does not wait"""
    for name in ("stubborn", "forced"):
        kubectl("run", name, "--image=example/p", "--annotations=jogak.io/ignores-term=true",
                "--overrides", json.dumps({"spec": {"terminationGracePeriodSeconds": 600}}))
        kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    kubectl("delete", "pod", "stubborn", "--wait=false")
    equal(kubectl.value("pod/stubborn", ".metadata.deletionGracePeriodSeconds"), "600", "grace")
    contains(kubectl("get", "pod", "stubborn"), "Terminating")
    kubectl("delete", "pod", "stubborn", "--grace-period=1")
    kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
    equal(kubectl.names("pods"), [], "pods")


@case(needs="controllers,simulated")
def pod_for_a_moment(kubectl, _):
    """run -i --rm of a short command ends; a failing one is started again, with waits between"""
    kubectl("run", "hello", "--image=example/p", "--rm", "-i", "--restart=Never", "--", "echo",
            "hi")
    equal(kubectl.names("pods"), [], "pods after --rm")
    kubectl("run", "loop", "--image=example/p", "--", "sh", "-c", "exit 1")
    eventually("CrashLoopBackOff", lambda: "CrashLoopBackOff" in kubectl("get", "pod", "loop"))
    eventually("an event", lambda: "Back-off restarting failed container" in kubectl(
        "events", "--for", "pod/loop"))


@case(needs="controllers,simulated")
def job_completes(kubectl, _):
    """A job counts its pods and ends"""
    kubectl.apply_file("job.yaml")
    kubectl("wait", "--for=condition=complete", "job/quick", "--timeout=60s")
    equal(kubectl.value("job/quick", ".status.succeeded"), "2", "succeeded")
    contains(kubectl("get", "job", "quick"), "Complete", "2/2")
    phases = kubectl("get", "pods", "-l", "batch.kubernetes.io/job-name=quick", "-o",
                     "jsonpath={.items[*].status.phase}")
    equal(phases, "Succeeded Succeeded", "phases")
    kubectl("delete", "job", "quick")
    eventually("its pods are gone", lambda: not kubectl.names("pods"))


@case(needs="controllers,simulated")
def job_fails(kubectl, _):
    """A job whose pods fail too often fails, and says why"""
    kubectl.apply_file("failing-job.yaml")
    kubectl("wait", "--for=condition=failed", "job/failing", "--timeout=60s")
    conditions = kubectl.json("get", "job", "failing")["status"]["conditions"]
    check(any(c["reason"] == "BackoffLimitExceeded" for c in conditions), f"{conditions}")
    code = kubectl("get", "pods", "-o", "jsonpath={.items[0].status.containerStatuses[0]"
                                        ".state.terminated.exitCode}")
    equal(code, "3", "exit code")


@case(needs="controllers,simulated")
def rollout_and_back(kubectl, _):
    """A deployment rolls out, pauses, goes back; its history tells"""
    kubectl.apply_file("deployment.yaml")
    contains(kubectl("rollout", "status", "deploy/web", "--timeout=60s"),
             "successfully rolled out")
    contains(kubectl("get", "deploy", "web"), "3/3")
    kubectl("set", "image", "deploy/web", "main=example/web:2")
    kubectl("rollout", "status", "deploy/web", "--timeout=60s")

    def images():
        return set(kubectl("get", "pods", "-l", "app=web", "-o",
                           "jsonpath={.items[*].spec.containers[0].image}").split())

    eventually("only the new image", lambda: images() == {"example/web:2"})
    history = kubectl("rollout", "history", "deploy/web")
    contains(history, "REVISION", "1", "2")
    contains(kubectl("rollout", "history", "deploy/web", "--revision=1"), "example/web:1")
    kubectl("rollout", "undo", "deploy/web")
    kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    eventually("only the old image", lambda: images() == {"example/web:1"})
    revision = ".metadata.annotations.deployment\\.kubernetes\\.io/revision"
    equal(kubectl.value("deploy/web", revision), "3", "revision")
    kubectl("rollout", "pause", "deploy/web")
    kubectl("set", "env", "deploy/web", "COLOUR=blue")
    kubectl.refused("rollout", "restart", "deploy/web", saying="paused")
    kubectl("rollout", "resume", "deploy/web")
    kubectl("rollout", "restart", "deploy/web")
    kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    equal(kubectl.value("deploy/web", ".status.availableReplicas"), "3", "available")


@case(needs="controllers,simulated")
def services_find_pods(kubectl, _):
    """expose makes a service whose endpoint slices hold the pods that are ready"""
    kubectl.apply_file("deployment.yaml")
    kubectl("expose", "deploy", "web", "--port=80", "--target-port=http")
    kubectl("rollout", "status", "deploy/web", "--timeout=60s")

    def pods():
        return set(kubectl("get", "pods", "-l", "app=web", "-o",
                           "jsonpath={.items[*].status.podIP}").split())

    def slices():
        return set(kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=web", "-o",
                           "jsonpath={.items[*].endpoints[*].addresses[*]}").split())

    eventually("an endpoint for each pod", lambda: len(pods()) == 3 and slices() == pods())
    kubectl("scale", "deploy/web", "--replicas=1")
    eventually("one endpoint", lambda: len(pods()) == 1 and slices() == pods())
    contains(kubectl("describe", "service", "web"), "80/TCP", "http/TCP")
    check(kubectl.value("service/web", ".spec.clusterIP"), "it has an address")


@case(needs="controllers,simulated")
def stateful_set(kubectl, _):
    """Pods with names that stay, in order"""
    kubectl.apply_file("stateful-set.yaml")
    kubectl("rollout", "status", "statefulset/ordered", "--timeout=60s")
    equal(kubectl.names("pods"), ["ordered-0", "ordered-1"], "pods")
    kubectl("delete", "pod", "ordered-0")
    kubectl("rollout", "status", "statefulset/ordered", "--timeout=60s")
    eventually("it is back", lambda: kubectl.names("pods") == ["ordered-0", "ordered-1"])
    kubectl("scale", "statefulset/ordered", "--replicas=1")
    eventually("the last one goes", lambda: kubectl.names("pods") == ["ordered-0"])


@case(needs="controllers,simulated", alone=True)
def daemon_set(kubectl, cluster):
    """One pod on each node"""
    kubectl.apply_file("daemon-set.yaml")
    kubectl("rollout", "status", "daemonset/everywhere", "--timeout=60s")
    nodes = kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}").split()
    equal(sorted(nodes), sorted(cluster.simulated), "nodes")


@case(needs="controllers,simulated")
def cron_job(kubectl, _):
    """A job made from a cron job belongs to it"""
    kubectl("create", "cronjob", "nightly", "--image=example/n", "--schedule=0 3 * * *", "--",
            "sleep", "1")
    kubectl("create", "job", "now", "--from=cronjob/nightly")
    kubectl("wait", "--for=condition=complete", "job/now", "--timeout=60s")
    equal(kubectl.value("job/now", ".metadata.ownerReferences[0].name"), "nightly", "owner")
    kubectl.refused("create", "cronjob", "bad", "--image=example/n", "--schedule=never",
                    saying="spec.schedule")
    kubectl("delete", "cronjob", "nightly")
    eventually("the job goes too", lambda: not kubectl.names("jobs"))


@case(needs="controllers,simulated", alone=True)
def playground_gpu_pod(kubectl, _):
    """examples/playground/1: one GPU"""
    kubectl("apply", "-f", os.path.join(EXAMPLES, "1-gpu-pod.yaml"))
    kubectl("wait", "--for=condition=Ready", "pod/one-gpu", "--timeout=60s")
    node = kubectl.value("pod/one-gpu", ".spec.nodeName")
    contains(kubectl("describe", "node", node), "one-gpu", "nvidia.com/gpu")
    kubectl("delete", "-f", os.path.join(EXAMPLES, "1-gpu-pod.yaml"), "--now")


@case(needs="controllers,simulated", alone=True)
def playground_inference(kubectl, _):
    """examples/playground/3: replicas on MIG slices"""
    manifest = os.path.join(EXAMPLES, "3-inference.yaml")
    kubectl("apply", "-f", manifest)
    kubectl("rollout", "status", "deploy/chat", "--timeout=60s")
    kubectl("scale", "deploy/chat", "--replicas=8")
    kubectl("rollout", "status", "deploy/chat", "--timeout=60s")
    equal(kubectl.run("diff", "-f", manifest)[0], 1, "diff")
    kubectl("apply", "-f", manifest)
    eventually("five again", lambda: kubectl.value("deploy/chat", ".status.replicas") == "5")
    kubectl("delete", "-f", manifest)


@case(needs="controllers,simulated", alone=True)
def unschedulable_says_why(kubectl, _):
    """examples/playground/5: a pod that cannot run says so in status, events and describe"""
    kubectl("apply", "-f", os.path.join(EXAMPLES, "5-cannot-run.yaml"))
    kubectl("wait", "--for=condition=PodScheduled=False", "pod/sixteen-gpus", "--timeout=30s")
    condition = next(c for c in kubectl.json("get", "pod", "sixteen-gpus")["status"]["conditions"]
                     if c["type"] == "PodScheduled")
    equal(condition["reason"], "Unschedulable", "reason")
    contains(condition["message"], "nodes are available", "Insufficient nvidia.com/gpu")
    eventually("an event", lambda: "Insufficient nvidia.com/gpu" in kubectl(
        "events", "--for", "pod/sixteen-gpus", "--types=Warning"))
    contains(kubectl("describe", "pod", "sixteen-gpus"), "FailedScheduling")
    contains(kubectl("get", "pod", "sixteen-gpus"), "Pending")


@case(needs="controllers,simulated", alone=True)
def preemption(kubectl, _):
    """examples/playground/2 and 4: urgent work takes the place of training, and training returns"""
    training = os.path.join(EXAMPLES, "2-training-job.yaml")
    urgent = os.path.join(EXAMPLES, "4-urgent-job.yaml")
    try:
        kubectl("apply", "-f", training)
        eventually("training runs", lambda: kubectl.value("job/train", ".status.ready") == "2")
        kubectl("apply", "-f", urgent)
        eventually("a victim", lambda: "Preempted" in kubectl("events", "--types=Normal"))
        kubectl("wait", "--for=condition=complete", "job/urgent", "--timeout=90s")
        eventually("training is back",
                   lambda: kubectl.value("job/train", ".status.ready") == "2")
        kubectl("delete", "job", "train", "urgent")
    finally:
        kubectl.run("delete", "-f", training, "-f", urgent, "--ignore-not-found", "--now")
