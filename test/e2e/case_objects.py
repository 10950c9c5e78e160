# SPDX-License-Identifier: Apache-2.0
#
# What an API server alone must do: objects, patches, owners of fields, lists and watches, custom
# kinds, admission. No pod has to run.

import json

from suite import case, check, contains, equal, eventually

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: x}}
data: {kept: "1", dropped: "2"}
"""


@case()
def create_get_delete(kubectl, _):
    """The forms of get for an object made and removed"""
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    equal(kubectl.value("configmap/c", ".data.a"), "b", "data")
    equal(kubectl("get", "cm", "c", "-o", "go-template={{.metadata.name}}"), "c", "go-template")
    columns = kubectl("get", "cm", "-o", "custom-columns=N:.metadata.name,A:.data.a")
    contains(columns, "c", "b")
    contains(kubectl("get", "cm", "c", "-o", "yaml"), "kind: ConfigMap")
    contains(kubectl("get", "cm", "c", "-o", "wide"), "DATA", "AGE")
    kubectl.refused("create", "configmap", "c", saying="already exists")
    kubectl("delete", "configmap", "c")
    kubectl.refused("get", "configmap", "c", saying=["NotFound", 'configmaps "c" not found'])
    equal(kubectl("get", "configmap", "c", "--ignore-not-found"), "", "get of nothing")


@case()
def apply_three_ways(kubectl, _):
    """What apply stops mentioning goes, what others added stays; diff tells before"""
    kubectl.apply(CONFIG)
    kubectl("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"others":"3"}}')
    changed = CONFIG.replace(', dropped: "2"', "").replace('kept: "1"', 'kept: "one"')
    code, out, err = kubectl.run("diff", "-f", "-", stdin=changed)
    equal(code, 1, f"exit code of diff ({err})")
    contains(out, "-  dropped:", "+  kept: one")
    contains(kubectl.apply(changed), "configured")
    equal(kubectl.json("get", "cm", "settings")["data"], {"kept": "one", "others": "3"}, "data")
    contains(kubectl.apply(changed), "unchanged")
    equal(kubectl.run("diff", "-f", "-", stdin=changed)[0], 0, "diff of nothing")


@case()
def patches(kubectl, _):
    """Strategic, merge and JSON patches; a list merges by its key or is replaced"""
    kubectl.apply_file("idle-deployment.yaml")

    def env():
        return json.loads(kubectl("get", "deploy", "idle", "-o",
                                  "jsonpath={.spec.template.spec.containers[0].env}") or "[]")

    def template(change):
        return json.dumps({"spec": {"template": {"spec": {"containers": [
            {"name": "main", **change}]}}}})

    kubectl("patch", "deploy", "idle", "-p", template({"env": [{"name": "B", "value": "2"}]}))
    equal(sorted(e["name"] for e in env()), ["A", "B"], "strategic merge")
    kubectl("patch", "deploy", "idle", "--type=json", "-p", json.dumps(
        [{"op": "test", "path": "/spec/replicas", "value": 2},
         {"op": "replace", "path": "/spec/replicas", "value": 1}]))
    equal(kubectl.value("deploy/idle", ".spec.replicas"), "1", "JSON patch")
    kubectl("patch", "deploy", "idle", "--type=merge", "-p",
            template({"image": "example/idle:2"}))
    equal(env(), [], "a merge patch replaces lists")
    kubectl.refused("patch", "deploy", "idle", "--type=json", "-p",
                    '[{"op": "test", "path": "/spec/replicas", "value": 7}]', saying="invalid")
    kubectl.refused("patch", "deploy", "idle", "-p", '{"spec":{"replicas":-1}}',
                    saying=["Invalid", "spec.replicas"])


@case()
def server_side_apply(kubectl, _):
    """Two owners of one field conflict; the one who insists takes it over"""
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=CONFIG)
    other = CONFIG.replace('kept: "1"', 'kept: "mine"')
    kubectl.refused("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=other,
                    saying=["conflict", '"one"', ".data.kept"])
    equal(kubectl.value("cm/settings", ".data.kept"), "1", "after the conflict")
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-",
            stdin=other)
    equal(kubectl.value("cm/settings", ".data.kept"), "mine", "after the force")
    shown = kubectl.json("get", "cm", "settings", "--show-managed-fields")
    managers = {m["manager"]: m for m in shown["metadata"]["managedFields"]}
    equal(sorted(managers), ["one", "two"], "managers")
    check("f:kept" not in managers["one"]["fieldsV1"].get("f:data", {}), "one lost the field")
    without = CONFIG.replace('data: {kept: "1", dropped: "2"}', "")
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=without)
    equal(kubectl.json("get", "cm", "settings")["data"], {"kept": "mine", "dropped": "2"},
          "data that two still owns")


@case()
def conflicts(kubectl, _):
    """A replace with an old resourceVersion is refused, one without is not"""
    kubectl.apply(CONFIG)
    old = kubectl.json("get", "cm", "settings")
    kubectl("label", "cm", "settings", "touched=yes")
    kubectl.refused("replace", "-f", "-", stdin=json.dumps(old),
                    saying=["Conflict", "the object has been modified"])
    del old["metadata"]["resourceVersion"]
    kubectl("replace", "-f", "-", stdin=json.dumps(old))
    equal(kubectl.value("cm/settings", ".metadata.labels.touched"), "", "label")


@case()
def dry_runs(kubectl, _):
    """A dry run answers as the real one and leaves nothing"""
    contains(kubectl("apply", "--dry-run=server", "-f", "-", stdin=CONFIG), "(server dry run)")
    contains(kubectl("create", "cm", "x", "--dry-run=client", "-o", "yaml"), "name: x")
    pod = kubectl("run", "p", "--image=example/p", "--dry-run=server", "-o", "json")
    equal(json.loads(pod)["spec"]["schedulerName"], "default-scheduler", "a default")
    names = [n for n in kubectl.names("cm,pods") if n != "kube-root-ca.crt"]
    equal(names, [], "what is left")


@case()
def labels_and_selectors(kubectl, _):
    """label, annotate and the ways to select"""
    for name, tier in (("a", "front"), ("b", "back"), ("c", "back")):
        kubectl("create", "cm", name)
        kubectl("label", "cm", name, f"tier={tier}")
    kubectl("label", "cm", "c", "extra=1")
    kubectl.refused("label", "cm", "a", "tier=back", saying="overwrite")
    kubectl("label", "cm", "a", "tier=side", "--overwrite")
    equal(kubectl.names("cm", "-l", "tier=back"), ["b", "c"], "-l a=b")
    equal(kubectl.names("cm", "-l", "tier in (back,side),!extra"), ["a", "b"], "-l in, !")
    equal(kubectl.names("cm", "-l", "tier notin (back),tier"), ["a"], "-l notin")
    equal(kubectl.names("cm", "--field-selector", "metadata.name=b"), ["b"], "fields")
    contains(kubectl("get", "cm", "-L", "tier", "-l", "tier"), "TIER", "side")
    kubectl("label", "cm", "c", "extra-")
    equal(kubectl.names("cm", "-l", "extra"), [], "a label taken away")
    kubectl("annotate", "cm", "c", "note=two words")
    equal(kubectl.value("cm/c", ".metadata.annotations.note"), "two words", "annotation")
    kubectl.refused("label", "cm", "c", "bad=-x-", saying="bad")
    kubectl("delete", "cm", "-l", "tier=back")
    equal(kubectl.names("cm", "-l", "tier"), ["a"], "after a delete by label")


@case()
def lists_in_pieces(kubectl, _):
    """A list in chunks is the whole list; --sort-by sorts; -A spans namespaces"""
    names = [f"n{i}" for i in range(7)]
    kubectl.apply("\n---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {n}, labels: {{l: x}}}}\n"
        f"data: {{k: '{9 - i}'}}" for i, n in enumerate(names)))
    equal(kubectl.names("cm", "-l", "l=x", "--chunk-size=3"), names, "in chunks")
    rows = kubectl("get", "cm", "-l", "l=x", "--sort-by=.data.k", "--no-headers")
    equal([row.split()[0] for row in rows.splitlines()], names[::-1], "--sort-by")
    page = json.loads(kubectl(
        "get", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/configmaps?limit=2"
        "&labelSelector=l%3Dx"))
    equal([i["metadata"]["name"] for i in page["items"]], names[:2], "the first page")
    equal(page["metadata"]["remainingItemCount"] if "remainingItemCount" in page["metadata"]
          else 5, 5, "what remains")
    check(page["metadata"].get("continue"), "a page goes on")
    contains(kubectl("get", "cm", "-A", "-l", "l=x"), "NAMESPACE", kubectl.namespace)


@case()
def watch(kubectl, _):
    """A watch sees what happens, in order"""
    kubectl("create", "cm", "before")

    def events(following):
        # objects one after the other, of which the last may be half written
        text, found, decoder = following.text(), [], json.JSONDecoder()
        while text.lstrip():
            text = text.lstrip()
            try:
                event, end = decoder.raw_decode(text)
            except ValueError:
                break
            found.append((event["type"], event["object"]["metadata"]["name"]))
            text = text[end:]
        return [event for event in found if event[1] != "kube-root-ca.crt"]

    with kubectl.follow("get", "cm", "--watch", "--output-watch-events", "-o", "json") as all_, \
            kubectl.follow("get", "cm", "--watch-only", "--no-headers",
                           "--field-selector=metadata.name=w") as only:
        eventually("the watch begins", lambda: events(all_))
        eventually("the second watch runs", lambda: only.process.poll() is None)
        kubectl("create", "cm", "w", "--from-literal=a=1")
        kubectl("patch", "cm", "w", "--type=merge", "-p", '{"data":{"a":"2"}}')
        kubectl("delete", "cm", "w")
        expected = [("ADDED", "before"), ("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]
        eventually(f"{expected}", lambda: len(events(all_)) >= len(expected))
        equal(events(all_), expected, "events")
        check("before" not in only.text(), "--watch-only and a field selector leave out others")


@case()
def strict_fields(kubectl, _):
    """Unknown fields and mistakes are named"""
    unknown = CONFIG + "extra: 1\n"
    kubectl.refused("create", "-f", "-", stdin=unknown, saying=["strict decoding", "extra"])
    out = kubectl("create", "--validate=ignore", "-f", "-", stdin=unknown)
    contains(out, "created")
    bad = """
apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec: {containers: [{name: main, image: i, ports: [{containerPort: 99999}]}], restartPolicy: X}
"""
    kubectl.refused("create", "-f", "-", stdin=bad,
                    saying=["metadata.name", "containerPort", "spec.restartPolicy"])


@case()
def custom_kinds(kubectl, _):
    """A kind of our own: schema, defaults, columns, subresources, explain"""
    kubectl.apply_file("crd.yaml")
    try:
        kubectl("wait", "--for=condition=Established", "crd/gadgets.e2e.jogak.io",
                "--timeout=30s")
        # a control plane may take a moment to serve what is established
        eventually("gadgets are served",
                   lambda: kubectl.run("get", "gadgets")[0] == 0)
        kubectl.apply_file("gadget.yaml")
        equal(kubectl.value("gadget/one", ".spec.replicas"), "1", "a default")
        contains(kubectl("get", "gd"), "SIZE", "REPLICAS", "small")
        kubectl.refused("patch", "gd", "one", "--type=merge", "-p", '{"spec":{"size":"huge"}}',
                        saying=["spec.size", "huge"])
        kubectl("scale", "gadget/one", "--replicas=4")
        equal(kubectl.value("gadget/one", ".spec.replicas"), "4", "scaled")
        kubectl("patch", "gd", "one", "--subresource=status", "--type=merge", "-p",
                '{"status":{"replicas":4},"spec":{"replicas":9}}')
        equal(kubectl.value("gd/one", ".status.replicas"), "4", "status")
        equal(kubectl.value("gd/one", ".spec.replicas"), "4", "spec, which status leaves alone")
        eventually("explain knows it", lambda: "how big the gadget is" in kubectl.run(
            "explain", "gadget.spec.size")[1])
        contains(kubectl("api-resources", "--api-group=e2e.jogak.io"), "gadgets", "Gadget")
        kubectl("delete", "gadget", "one")
    finally:
        kubectl("delete", "crd", "gadgets.e2e.jogak.io")
    eventually("gadgets are gone",
               lambda: kubectl.run("get", "--raw", "/apis/e2e.jogak.io/v1")[0] != 0)


@case(needs="controllers")
def priority_admission(kubectl, cluster):
    """A pod's class becomes its priority; an unknown class is refused"""
    name = f"e2e-{cluster.suffix}"
    kubectl("create", "priorityclass", name, "--value=77")
    try:
        def pod(priority_class):
            return json.dumps({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"priorityClassName": priority_class,
                         "nodeSelector": {"e2e.jogak.io/nowhere": "true"},
                         "containers": [{"name": "main", "image": "example/p"}]}})

        kubectl.refused("create", "-f", "-", stdin=pod("e2e-none"),
                        saying=["Forbidden", "e2e-none"])
        kubectl("create", "-f", "-", stdin=pod(name))
        equal(kubectl.value("pod/p", ".spec.priority"), "77", "priority")
    finally:
        kubectl("delete", "priorityclass", name)


@case(needs="controllers")
def quotas(kubectl, _):
    """A quota counts, and refuses what is beyond it"""
    kubectl("create", "quota", "few", "--hard=pods=1,requests.cpu=1,count/configmaps=3")
    eventually("the quota counts",
               lambda: kubectl.value("quota/few", ".status.used.pods") == "0")
    kubectl.refused("run", "p", "--image=example/p", saying=["Forbidden", "requests.cpu"])
    kubectl.refused("run", "p", "--image=example/p", "--overrides", json.dumps(
        {"spec": {"containers": [{"name": "p", "image": "example/p", "resources": {
            "requests": {"cpu": "2"}}}]}}), saying=["exceeded quota: few", "requests.cpu=2"])
    small = json.dumps({"spec": {
        "nodeSelector": {"e2e.jogak.io/nowhere": "true"},
        "containers": [{"name": "p", "image": "example/p",
                        "resources": {"requests": {"cpu": "500m"}}}]}})
    kubectl("run", "p", "--image=example/p", "--overrides", small)
    eventually("the pod counts", lambda: kubectl.value("quota/few", ".status.used.pods") == "1")
    kubectl.refused("run", "q", "--image=example/p", "--overrides", small,
                    saying=["exceeded quota: few", "pods=1"])
    contains(kubectl("describe", "quota", "few"), "requests.cpu", "500m")
    kubectl("delete", "pod", "p", "--now")
    eventually("the pod is given back",
               lambda: kubectl.value("quota/few", ".status.used.pods") == "0")


@case(needs="controllers")
def limit_ranges(kubectl, _):
    """A limit range gives defaults and refuses what is beyond it"""
    kubectl.apply("""
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
    - {type: Container, default: {cpu: 200m}, defaultRequest: {cpu: 100m}, max: {cpu: "1"}}
""")
    kubectl("run", "p", "--image=example/p", "--overrides",
            json.dumps({"spec": {"nodeSelector": {"e2e.jogak.io/nowhere": "true"}}}))
    equal(kubectl.value("pod/p", ".spec.containers[0].resources.requests.cpu"), "100m", "request")
    equal(kubectl.value("pod/p", ".spec.containers[0].resources.limits.cpu"), "200m", "limit")
    kubectl.refused("run", "q", "--image=example/p", "--overrides", json.dumps(
        {"spec": {"containers": [{"name": "q", "image": "example/p", "resources": {
            "limits": {"cpu": "2"}}}]}}), saying=["Forbidden", "maximum cpu usage per Container"])
