# SPDX-License-Identifier: Apache-2.0
#
# deploy/jogak-scheduler.yaml: one apply, nothing to warn of, and a service account that may do what
# the scheduler does and nothing else.

import json
import os

from suite import HERE, Failed, Skipped, case, check, contains, equal, eventually

MANIFEST = os.path.join(HERE, "..", "..", "deploy", "jogak-scheduler.yaml")
OURS = "app.kubernetes.io/name=jogak-scheduler"
ACCOUNT = "system:serviceaccount:kube-system:jogak-scheduler"
STORAGE = "storage.k8s.io"
LEASES = "coordination.k8s.io"
READ = [("", name) for name in ("nodes", "pods", "namespaces", "services",
                                "replicationcontrollers", "persistentvolumes",
                                "persistentvolumeclaims")]
READ += [("apps", "replicasets"), ("apps", "statefulsets"), ("policy", "poddisruptionbudgets")]
READ += [(STORAGE, name) for name in ("storageclasses", "csinodes", "csidrivers",
                                      "csistoragecapacities", "volumeattachments")]
# (verb, group, resource), everywhere
ALLOWED = [(verb, *what) for what in READ for verb in ("list", "watch")]
ALLOWED += [("get", "", "pods"), ("delete", "", "pods"), ("create", "", "pods/binding"),
            ("patch", "", "pods/status"), ("patch", "", "persistentvolumeclaims"),
            ("get", "", "persistentvolumes"), ("patch", "", "persistentvolumes"),
            ("create", "events.k8s.io", "events"), ("patch", "events.k8s.io", "events")]
# (verb, group, resource, namespace, name)
ALLOWED_LEASES = [("create", LEASES, "leases", "kube-system", ""),
                  ("get", LEASES, "leases", "kube-system", "jogak-scheduler"),
                  ("update", LEASES, "leases", "kube-system", "jogak-scheduler")]
REFUSED = [("update", LEASES, "leases", "kube-system", "kube-scheduler"),
           ("update", LEASES, "leases", "default", "jogak-scheduler"),
           ("create", LEASES, "leases", "default", ""),
           ("delete", LEASES, "leases", "kube-system", "jogak-scheduler")]
REFUSED += [(verb, group, resource, "default", "") for verb, group, resource in (
    ("get", "", "secrets"), ("list", "", "secrets"), ("list", "", "configmaps"),
    ("create", "", "pods"), ("update", "", "pods"), ("patch", "", "pods"),
    ("deletecollection", "", "pods"), ("create", "", "pods/exec"), ("create", "", "pods/eviction"),
    ("update", "", "pods/status"), ("patch", "", "nodes"), ("patch", "", "nodes/status"),
    ("delete", "", "nodes"), ("update", "", "persistentvolumes"),
    ("delete", "", "persistentvolumes"),
    ("update", "", "persistentvolumeclaims"), ("delete", "", "persistentvolumeclaims"),
    ("create", "", "events"), ("get", "", "services"), ("list", "apps", "deployments"),
    ("list", "scheduling.k8s.io", "priorityclasses"), ("update", "policy", "poddisruptionbudgets"),
    ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ("create", "", "serviceaccounts/token"), ("impersonate", "", "users"))]


def reviews_of(kubectl, account, questions):
    """What the API server says of each (verb, group, resource, namespace, name)."""
    items = []
    for verb, group, resource, namespace, name in questions:
        plain, _, part = resource.partition("/")
        items.append({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": account, "groups": ["system:serviceaccounts", "system:authenticated",
                                                 "system:serviceaccounts:kube-system"],
                     "resourceAttributes": {"verb": verb, "group": group, "resource": plain,
                                            "subresource": part, "namespace": namespace,
                                            "name": name}}})
    text = kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": items}))
    answers, decoder = [], json.JSONDecoder()
    while text.strip():
        answer, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        answers.append(answer)
    equal(len(answers), len(questions), "answers")
    return [answer["status"]["allowed"] for answer in answers]


def reviews(kubectl, questions):
    return reviews_of(kubectl, ACCOUNT, questions)


def rules_of(kubectl, account, namespace):
    """{(verb, group, resource)} that the account may do there, names of objects left out"""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
              "spec": {"namespace": namespace}}
    answer = json.loads(kubectl("create", "--as", account, "--validate=false", "-f", "-",
                                "-o", "json", stdin=json.dumps(review)))
    return {(verb, group, resource) for rule in answer["status"]["resourceRules"]
            for verb in rule["verbs"] for group in rule["apiGroups"]
            for resource in rule["resources"]
            if group not in ("authorization.k8s.io", "authentication.k8s.io")}  # everybody's


def rules(kubectl, namespace):
    return rules_of(kubectl, ACCOUNT, namespace)


class Applied:
    """`with Applied(kubectl):` the manifest is there."""

    def __init__(self, kubectl):
        self.kubectl = kubectl.inside("")  # the manifest names its namespace

    def __enter__(self):
        code, _, err = self.kubectl.run("apply", "-f", MANIFEST)
        equal((code, err), (0, ""), "apply")
        return self.kubectl

    def __exit__(self, *_):
        self.kubectl.run("delete", "-f", MANIFEST, "--ignore-not-found", "--wait=false")
        system = self.kubectl.inside("kube-system")
        system.run("delete", "pods", "-l", OURS, "--force", "--grace-period=0")
        eventually("its pods are gone", lambda: not system.names("pods", "-l", OURS))


@case(needs="controllers", alone=True)
def deploy_applies(kubectl, _):
    """One apply makes the scheduler's deployment, and warns of nothing"""
    system = kubectl.inside("kube-system")
    code, out, err = kubectl.inside("").run("apply", "--dry-run=server", "-f", MANIFEST)
    equal((code, err), (0, ""), "dry run")
    contains(out, "deployment.apps/jogak-scheduler created (server dry run)")
    system.refused("get", "deploy", "jogak-scheduler", saying="NotFound")
    with Applied(kubectl) as everywhere:
        # a budget's selector is replaced as a whole, which kubectl calls configured each time
        changed = [line for line in everywhere("apply", "-f", MANIFEST).splitlines()
                   if not line.endswith(" unchanged") and "poddisruptionbudget" not in line]
        equal(changed, [], "changed by a second apply")
        eventually("two replicas", lambda: len(system.names("pods", "-l", OURS)) == 2)
        for pod in system.json("get", "pods", "-l", OURS)["items"]:
            equal(pod["spec"]["priority"], 2000000000, "priority")
            equal(pod["spec"]["serviceAccountName"], "jogak-scheduler", "account")


@case(needs="controllers", alone=True)
def deploy_permissions(kubectl, _):
    """The scheduler's account may do what it does and nothing else"""
    with Applied(kubectl) as everywhere:
        if reviews(everywhere, REFUSED[:1])[0]:
            raise Skipped("everybody may do everything here")
        permissions(everywhere)


def permissions(kubectl):
    everywhere = [(*what, "default", "") for what in ALLOWED]

    def granted():
        return reviews(kubectl, everywhere + ALLOWED_LEASES)

    try:  # the authorizer hears of new roles a moment later
        eventually("all permissions", lambda: all(granted()), seconds=10)
    except Failed:
        asked = everywhere + ALLOWED_LEASES
        raise Failed(f"refused: {[a for a, yes in zip(asked, granted()) if not yes]}") from None
    for question, allowed in zip(REFUSED, reviews(kubectl, REFUSED)):
        check(not allowed, f"may {question}")
    equal(sorted(rules(kubectl, "default") - set(ALLOWED)), [], "more than it needs")
    equal(sorted(set(ALLOWED) - rules(kubectl, "default")), [], "less than it needs")
    leases = {what[:3] for what in ALLOWED_LEASES}
    equal(sorted(rules(kubectl, "kube-system") - set(ALLOWED)), sorted(leases), "leases")
