# SPDX-License-Identifier: Apache-2.0
#
# What a program written with the official Python client does: typed calls, watches, patches,
# custom objects, the dynamic client, subresources, leader election. Run by python_client_test.py.

import logging
import os
import sys
import tempfile
import threading
import time
import unittest
import uuid

import kubernetes
import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock import leaselock

from playground import Playground

WAIT_SECONDS = 60
SIMULATED = "jogak.io/simulated=true"


def eventually(what, claim):
    deadline = time.monotonic() + WAIT_SECONDS
    while not claim():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {WAIT_SECONDS} s in vain: {what}")
        time.sleep(0.05)


def pod_manifest(name, **spec):
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "example/p",
                                 "command": ["sleep", "infinity"],
                                 "resources": {"requests": {"cpu": "10m"}}}],
                 "terminationGracePeriodSeconds": 1, **spec}}


def deployment_manifest(name, replicas):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example/d", "resources": {
                "requests": {"cpu": "10m"}}}]}}}}


class ClientCase(unittest.TestCase):
    """Each case works in a namespace of its own."""

    def setUp(self):
        self.core = client.CoreV1Api()
        self.apps = client.AppsV1Api()
        self.ns = "client-" + uuid.uuid4().hex[:8]
        self.core.create_namespace({"metadata": {"name": self.ns}})
        eventually("a default account", lambda: self.core.list_namespaced_service_account(
            self.ns).items)

    def tearDown(self):
        self.core.delete_namespace(self.ns)

    def refused(self, status, reason, function, *args, **more):
        with self.assertRaises(ApiException) as raised:
            function(*args, **more)
        self.assertEqual(raised.exception.status, status, raised.exception.body)
        body = yaml.safe_load(raised.exception.body)
        self.assertEqual((body["kind"], body["reason"], body["code"]), ("Status", reason, status))
        return body

    def config_map(self, name, **data):
        return self.core.create_namespaced_config_map(
            self.ns, {"metadata": {"name": name, "labels": {"made": "here"}}, "data": data})


class Objects(ClientCase):
    def test_create_read_replace_delete(self):
        made = self.config_map("c", a="1")
        self.assertTrue(made.metadata.uid)
        self.assertIsNotNone(made.metadata.creation_timestamp.tzinfo)
        self.refused(409, "AlreadyExists", self.config_map, "c")
        made.data["a"] = "2"
        replaced = self.core.replace_namespaced_config_map("c", self.ns, made)
        self.assertEqual(replaced.data, {"a": "2"})
        self.refused(409, "Conflict", self.core.replace_namespaced_config_map, "c", self.ns, made)
        gone = self.core.delete_namespaced_config_map("c", self.ns)
        # a Status; clients from 32 on leave it as it came
        self.assertEqual(gone["status"] if isinstance(gone, dict) else gone.status, "Success")
        body = self.refused(404, "NotFound", self.core.read_namespaced_config_map, "c", self.ns)
        self.assertEqual(body["details"], {"name": "c", "kind": "configmaps"})

    def test_preconditions_and_dry_run(self):
        made = self.config_map("c", a="1")
        self.refused(409, "Conflict", self.core.delete_namespaced_config_map, "c", self.ns,
                     body=client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="no")))
        self.core.delete_namespaced_config_map("c", self.ns, dry_run="All")
        self.core.delete_namespaced_config_map(
            "c", self.ns, body=client.V1DeleteOptions(preconditions=client.V1Preconditions(
                uid=made.metadata.uid, resource_version=made.metadata.resource_version)))
        self.core.create_namespaced_config_map(self.ns, {"metadata": {"name": "d"}}, dry_run="All")
        self.refused(404, "NotFound", self.core.read_namespaced_config_map, "d", self.ns)

    def test_lists(self):
        for i in range(5):
            self.config_map(f"c{i}", n=str(i))
        page = self.core.list_namespaced_config_map(self.ns, limit=2, label_selector="made=here")
        names = [item.metadata.name for item in page.items]
        while page.metadata._continue:
            page = self.core.list_namespaced_config_map(
                self.ns, limit=2, label_selector="made=here", _continue=page.metadata._continue)
            names += [item.metadata.name for item in page.items]
        self.assertEqual(names, [f"c{i}" for i in range(5)])
        one = self.core.list_config_map_for_all_namespaces(
            field_selector=f"metadata.name=c3,metadata.namespace={self.ns}")
        self.assertEqual([item.data for item in one.items], [{"n": "3"}])
        self.core.delete_collection_namespaced_config_map(self.ns, label_selector="made=here")
        rest = self.core.list_namespaced_config_map(self.ns, label_selector="made=here")
        self.assertEqual(rest.items, [])
        self.refused(400, "BadRequest", self.core.list_namespaced_config_map, self.ns,
                     label_selector="a==b==c")

    def test_a_list_says_which_version_it_is(self):
        first = self.config_map("c")
        self.config_map("d")
        exact = self.core.list_namespaced_config_map(
            self.ns, label_selector="made=here", resource_version=first.metadata.resource_version,
            resource_version_match="Exact")
        self.assertEqual([item.metadata.name for item in exact.items], ["c"])
        newer = self.core.list_namespaced_config_map(
            self.ns, label_selector="made=here", resource_version=first.metadata.resource_version,
            resource_version_match="NotOlderThan")
        self.assertEqual([item.metadata.name for item in newer.items], ["c", "d"])

    def test_invalid_objects_are_refused_by_field(self):
        body = self.refused(422, "Invalid", self.core.create_namespaced_pod, self.ns,
                            pod_manifest("p", restartPolicy="Perhaps"))
        self.assertEqual([cause["field"] for cause in body["details"]["causes"]],
                         ["spec.restartPolicy"])

    def test_objects_from_yaml(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}}
            yaml.safe_dump_all([settings, deployment_manifest("y", 0)], file)
            file.flush()
            utils.create_from_yaml(client.ApiClient(), file.name, namespace=self.ns)
        self.assertEqual(self.apps.read_namespaced_deployment("y", self.ns).spec.replicas, 0)

    def test_versions_and_discovery(self):
        self.assertTrue(client.VersionApi().get_code().git_version.startswith("v1."))
        groups = [group.name for group in client.ApisApi().get_api_versions().groups]
        self.assertIn("apps", groups)
        self.assertIn("pods", [r.name for r in self.core.get_api_resources().resources])
        review = client.AuthorizationV1Api().create_self_subject_access_review(
            {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}})
        self.assertTrue(review.status.allowed)
        stranger = client.Configuration.get_default_copy()
        stranger.refresh_api_key_hook = None
        stranger.api_key = {key: "Bearer of-somebody-else"
                            for key in ("authorization", "BearerToken")}
        self.refused(401, "Unauthorized", client.CoreV1Api(client.ApiClient(stranger)).list_node)


class Patches(ClientCase):
    def setUp(self):
        super().setUp()
        self.apps.create_namespaced_deployment(self.ns, deployment_manifest("d", 0))

    def patched(self, body, content_type, **more):
        return self.apps.patch_namespaced_deployment(
            "d", self.ns, body, _content_type=content_type, **more)

    def containers(self, *containers):
        return {"spec": {"template": {"spec": {"containers": list(containers)}}}}

    def test_strategic_merge(self):
        change = self.containers({"name": "side", "image": "example/s"})
        made = self.patched(change, "application/strategic-merge-patch+json")
        self.assertEqual(sorted(c.name for c in made.spec.template.spec.containers),
                         ["main", "side"])

    def test_merge(self):
        change = self.containers({"name": "side", "image": "example/s"})
        made = self.patched(change, "application/merge-patch+json")
        self.assertEqual([c.name for c in made.spec.template.spec.containers], ["side"])

    def test_json(self):
        made = self.patched([{"op": "replace", "path": "/spec/replicas", "value": 0},
                             {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}],
                            "application/json-patch+json")
        self.assertEqual(made.metadata.labels, {"a": "b"})
        self.refused(422, "Invalid", self.patched,
                     [{"op": "test", "path": "/spec/replicas", "value": 9}],
                     "application/json-patch+json")

    def test_server_side_apply(self):
        def applied(replicas, manager, **more):
            return self.patched(
                {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                 "spec": {"replicas": replicas}},
                "application/apply-patch+yaml", field_manager=manager, **more)

        applied(0, "one")
        applied(0, "two")  # the same value: both own it
        body = self.refused(409, "Conflict", applied, 2, "one")
        self.assertIn(".spec.replicas", [c["field"] for c in body["details"]["causes"]])
        made = applied(1, "one", force=True)
        self.assertEqual(made.spec.replicas, 1)
        owners = [entry.manager for entry in made.metadata.managed_fields
                  if "f:replicas" in entry.fields_v1.get("f:spec", {})]
        self.assertEqual(owners, ["one"])

    def test_unknown_patch_type(self):
        with self.assertRaises(ApiException) as raised:
            self.patched({}, "application/json")
        self.assertEqual(raised.exception.status, 415)


class Watches(ClientCase):
    def events(self, count, **more):
        """The first `count` events of a watch."""
        found = []
        stream = watch.Watch()
        for event in stream.stream(self.core.list_namespaced_config_map, self.ns,
                                   label_selector="made=here", timeout_seconds=20, **more):
            found.append((event["type"], event["object"]))
            if len(found) == count:
                stream.stop()
        return found

    def test_from_a_list(self):
        self.config_map("before")
        version = self.core.list_namespaced_config_map(self.ns).metadata.resource_version
        made = self.config_map("c", a="1")
        made.data["a"] = "2"
        self.core.replace_namespaced_config_map("c", self.ns, made)
        self.core.delete_namespaced_config_map("c", self.ns)
        found = self.events(3, resource_version=version)
        self.assertEqual([kind for kind, _ in found], ["ADDED", "MODIFIED", "DELETED"])
        self.assertEqual([item.data for _, item in found], [{"a": "1"}, {"a": "2"}, {"a": "2"}])
        versions = [int(item.metadata.resource_version) for _, item in found]
        self.assertEqual(versions, sorted(set(versions)))

    def test_what_is_there_comes_first(self):
        self.config_map("c")
        self.assertEqual([(kind, item.metadata.name) for kind, item in self.events(1)],
                         [("ADDED", "c")])

    def test_live(self):
        found = []
        thread = threading.Thread(target=lambda: found.extend(self.events(2)))
        thread.start()
        self.config_map("a")
        self.config_map("b")
        thread.join(timeout=30)
        self.assertEqual([item.metadata.name for _, item in found], ["a", "b"])

    def test_informer(self):
        try:
            from kubernetes.informer import SharedInformer
        except ImportError:
            self.skipTest("this client has no informers")
        self.config_map("a")
        informer = SharedInformer(self.core.list_namespaced_config_map, namespace=self.ns,
                                  label_selector="made=here")

        def names():
            return sorted(item.metadata.name for item in informer.cache.list())

        # it calls its own end an error
        self.addCleanup(logging.disable, logging.NOTSET)
        logging.disable(logging.ERROR)
        informer.start()
        try:
            eventually("the informer knows a", lambda: names() == ["a"])
            self.config_map("b")
            eventually("the informer sees b", lambda: names() == ["a", "b"])
            self.core.delete_namespaced_config_map("a", self.ns)
            eventually("the informer misses a", lambda: names() == ["b"])
        finally:
            informer.stop()

    def test_leaving_the_selection_is_a_deletion(self):
        self.config_map("c")
        version = self.core.list_namespaced_config_map(self.ns).metadata.resource_version
        self.core.patch_namespaced_config_map("c", self.ns, {"metadata": {"labels": {
            "made": None}}})
        self.assertEqual([kind for kind, _ in self.events(1, resource_version=version)],
                         ["DELETED"])

    def test_bookmarks_and_the_end_of_time(self):
        start = time.monotonic()
        kinds = []
        version = self.core.list_namespaced_config_map(self.ns).metadata.resource_version
        for event in watch.Watch().stream(
                self.core.list_namespaced_config_map, self.ns, timeout_seconds=2,
                allow_watch_bookmarks=True, resource_version=version):
            kinds.append(event["type"])
        self.assertLess(time.monotonic() - start, 15)
        self.assertLessEqual(set(kinds), {"BOOKMARK"})

    def test_the_start_ends_with_a_bookmark(self):
        self.config_map("c")
        answer = self.core.list_namespaced_config_map(
            self.ns, label_selector="made=here", watch=True, send_initial_events=True,
            allow_watch_bookmarks=True, resource_version_match="NotOlderThan", timeout_seconds=2,
            _preload_content=False)
        found = [yaml.safe_load(line) for line in answer.data.decode().splitlines()]
        self.assertEqual([event["type"] for event in found][:2], ["ADDED", "BOOKMARK"])
        notes = found[1]["object"]["metadata"]["annotations"]
        self.assertEqual(notes["k8s.io/initial-events-end"], "true")

    def test_what_is_not_there_yet(self):
        body = self.refused(504, "Timeout", self.core.list_namespaced_config_map, self.ns,
                            resource_version="99999999", resource_version_match="NotOlderThan")
        self.assertEqual(body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge")


class Restarts(unittest.TestCase):
    """With --data the objects outlive the server, but not what happened to them."""

    def test_objects_stay_and_old_versions_are_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            with Playground("--data", folder, "--nodes", "1xcpu") as kubeconfig:
                core = client.CoreV1Api(config.new_client_from_config(kubeconfig))
                old = core.create_namespaced_config_map("default", {"metadata": {"name": "c"}})
            with Playground("--data", folder) as kubeconfig:
                core = client.CoreV1Api(config.new_client_from_config(kubeconfig))
                kept = core.read_namespaced_config_map("c", "default")
                self.assertEqual(kept.metadata.uid, old.metadata.uid)
                with self.assertRaises(ApiException) as raised:
                    for _ in watch.Watch().stream(core.list_namespaced_config_map, "default",
                                                  resource_version="1", timeout_seconds=5):
                        pass
                self.assertEqual(raised.exception.status, 410)


class Custom(ClientCase):
    GROUP = "client.jogak.io"

    def setUp(self):
        super().setUp()
        self.kinds = client.ApiextensionsV1Api()
        self.plural = "things" + uuid.uuid4().hex[:6]
        self.kind = self.plural.capitalize()
        self.name = f"{self.plural}.{self.GROUP}"
        self.kinds.create_custom_resource_definition({
            "metadata": {"name": self.name},
            "spec": {"group": self.GROUP, "scope": "Namespaced",
                     "names": {"plural": self.plural, "kind": self.kind},
                     "versions": [{
                         "name": "v1", "served": True, "storage": True,
                         "subresources": {"status": {}, "scale": {
                             "specReplicasPath": ".spec.replicas",
                             "statusReplicasPath": ".status.replicas"}},
                         "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                             "spec": {"type": "object", "properties": {
                                 "size": {"type": "integer", "minimum": 1},
                                 "replicas": {"type": "integer", "default": 1}}},
                             "status": {"type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True}}}}}]}})
        eventually("it is established", lambda: any(
            c.type == "Established" and c.status == "True"
            for c in self.kinds.read_custom_resource_definition(self.name).status.conditions or []))

    def tearDown(self):
        self.kinds.delete_custom_resource_definition(self.name)
        super().tearDown()

    def thing(self, name, **spec):
        return {"apiVersion": f"{self.GROUP}/v1", "kind": self.kind, "metadata": {"name": name},
                "spec": spec}

    def test_custom_objects(self):
        api = client.CustomObjectsApi()
        where = (self.GROUP, "v1", self.ns, self.plural)
        made = api.create_namespaced_custom_object(*where, self.thing("t", size=1))
        self.assertEqual(made["spec"], {"size": 1, "replicas": 1})
        self.refused(422, "Invalid", api.create_namespaced_custom_object, *where,
                     self.thing("u", size=0))
        api.patch_namespaced_custom_object(*where, "t", {"spec": {"size": 2}})
        api.patch_namespaced_custom_object_status(*where, "t", {"status": {"replicas": 5}})
        api.patch_namespaced_custom_object_scale(*where, "t", {"spec": {"replicas": 3}})
        scale = api.get_namespaced_custom_object_scale(*where, "t")
        self.assertEqual((scale["spec"], scale["status"]), ({"replicas": 3}, {"replicas": 5}))
        found = api.list_namespaced_custom_object(*where)
        self.assertEqual([item["spec"] for item in found["items"]], [{"size": 2, "replicas": 3}])
        api.delete_namespaced_custom_object(*where, "t")
        self.refused(404, "NotFound", api.get_namespaced_custom_object, *where, "t")

    def test_dynamic_client(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = os.path.join(folder, "discovery")
            things = dynamic.DynamicClient(client.ApiClient(), cache_file=cache).resources.get(
                api_version=f"{self.GROUP}/v1", kind=self.kind)
        things.create(body=self.thing("t", size=1), namespace=self.ns)
        applied = things.server_side_apply(
            body=self.thing("t", replicas=7), namespace=self.ns, field_manager="dynamic",
            force_conflicts=True)
        self.assertEqual((applied.spec.size, applied.spec.replicas), (1, 7))
        things.patch(body={"spec": {"size": 4}}, name="t", namespace=self.ns,
                     content_type="application/merge-patch+json")
        events = list(things.watch(namespace=self.ns, timeout=1))
        self.assertEqual([(e["type"], e["object"].spec.size) for e in events], [("ADDED", 4)])
        things.delete(name="t", namespace=self.ns)
        self.assertEqual(things.get(namespace=self.ns).items, [])

    def test_dynamic_client_finds_what_is_built_in(self):
        with tempfile.TemporaryDirectory() as folder:
            resources = dynamic.DynamicClient(
                client.ApiClient(), cache_file=os.path.join(folder, "discovery")).resources
        nodes = resources.get(api_version="v1", kind="Node")
        self.assertTrue(nodes.get(label_selector=SIMULATED).items)
        deployments = resources.get(api_version="apps/v1", kind="Deployment")
        deployments.create(body=deployment_manifest("d", 0), namespace=self.ns)
        scale = deployments.scale.get(name="d", namespace=self.ns)
        self.assertEqual((scale.kind, scale.spec.replicas), ("Scale", None))


class Running(ClientCase):
    def start(self, name, **spec):
        self.core.create_namespaced_pod(self.ns, pod_manifest(name, **spec))
        self.phase(name, "Running")

    def phase(self, name, phase):
        eventually(f"{name} is {phase}", lambda: self.core.read_namespaced_pod(
            name, self.ns).status.phase == phase)

    def gone(self, name):
        eventually(f"{name} is gone", lambda: name not in [
            p.metadata.name for p in self.core.list_namespaced_pod(self.ns).items])

    def test_pod_logs_and_deletion(self):
        self.start("p")
        pod = self.core.read_namespaced_pod("p", self.ns)
        self.assertTrue(pod.status.pod_ip)
        self.assertTrue(pod.status.container_statuses[0].state.running.started_at)
        text = self.core.read_namespaced_pod_log("p", self.ns, tail_lines=1)
        self.assertIn("simulated", text)
        self.refused(400, "BadRequest", self.core.read_namespaced_pod_log, "p", self.ns,
                     container="none")
        deleted = self.core.delete_namespaced_pod("p", self.ns)
        self.assertIsNotNone(deleted.metadata.deletion_timestamp)
        self.gone("p")

    def test_eviction_respects_budgets(self):
        self.start("p")
        policy = client.PolicyV1Api()
        policy.create_namespaced_pod_disruption_budget(
            self.ns, {"metadata": {"name": "b"}, "spec": {
                "minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}})
        eventually("the budget counts", lambda: policy.read_namespaced_pod_disruption_budget(
            "b", self.ns).status.current_healthy == 1)
        eviction = {"metadata": {"name": "p"}}
        body = self.refused(429, "TooManyRequests", self.core.create_namespaced_pod_eviction,
                            "p", self.ns, eviction)
        self.assertEqual(body["details"]["causes"][0]["reason"], "DisruptionBudget")
        policy.delete_namespaced_pod_disruption_budget("b", self.ns)
        self.core.create_namespaced_pod_eviction("p", self.ns, eviction)
        self.gone("p")

    def test_binding(self):
        node = self.core.list_node(label_selector=SIMULATED).items[0].metadata.name
        self.core.create_namespaced_pod(self.ns, pod_manifest(
            "p", schedulerName="nobody", tolerations=[{"operator": "Exists"}]))
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": node}}
        self.core.create_namespaced_pod_binding("p", self.ns, binding, _preload_content=False)
        self.phase("p", "Running")
        self.assertEqual(self.core.read_namespaced_pod("p", self.ns).spec.node_name, node)
        self.refused(409, "Conflict", self.core.create_namespaced_pod_binding, "p", self.ns,
                     binding)

    def test_scale_and_status(self):
        self.apps.create_namespaced_deployment(self.ns, deployment_manifest("d", 1))
        self.apps.patch_namespaced_deployment_scale("d", self.ns, {"spec": {"replicas": 2}})
        scale = self.apps.read_namespaced_deployment_scale("d", self.ns)
        self.assertEqual((scale.spec.replicas, scale.status.selector), (2, "app=d"))
        eventually("two are available", lambda: self.apps.read_namespaced_deployment_status(
            "d", self.ns).status.available_replicas == 2)
        self.apps.delete_namespaced_deployment("d", self.ns, propagation_policy="Foreground")
        eventually("nothing is left",
                   lambda: not self.core.list_namespaced_pod(self.ns).items)

    def test_job(self):
        batch = client.BatchV1Api()
        pod = pod_manifest("x")["spec"]
        pod["containers"][0]["command"] = ["sleep", "1"]
        batch.create_namespaced_job(self.ns, {"metadata": {"name": "j"}, "spec": {"template": {
            "spec": {**pod, "restartPolicy": "Never"}}}})
        kinds = []
        stream = watch.Watch()
        for event in stream.stream(batch.list_namespaced_job, self.ns, timeout_seconds=30):
            kinds.append(event["type"])
            if event["object"].status.succeeded == 1:
                stream.stop()
        self.assertEqual(kinds[0], "ADDED")
        self.assertEqual(batch.read_namespaced_job("j", self.ns).status.succeeded, 1)

    def test_events_tell(self):
        self.start("p")

        def reasons():
            return [e.reason for e in self.core.list_namespaced_event(
                self.ns, field_selector="involvedObject.name=p").items]

        eventually("Scheduled and Started", lambda: {"Scheduled", "Started"} <= set(reasons()))


class Leases(ClientCase):
    def test_leases(self):
        api = client.CoordinationV1Api()
        made = api.create_namespaced_lease(self.ns, {"metadata": {"name": "l"}, "spec": {
            "holderIdentity": "me", "leaseDurationSeconds": 15,
            "renewTime": "2026-01-02T03:04:05.678901Z"}})
        self.assertEqual(made.spec.renew_time.microsecond, 678901)
        made.spec.holder_identity = "you"
        self.assertEqual(
            api.replace_namespaced_lease("l", self.ns, made).spec.holder_identity, "you")
        self.refused(409, "Conflict", api.replace_namespaced_lease, "l", self.ns, made)

    def test_leader_election(self):
        leads, stopped = threading.Event(), threading.Event()
        elected = leaderelection.LeaderElection(electionconfig.Config(
            leaselock.LeaseLock("leader", self.ns, "me"), lease_duration=4, renew_deadline=3,
            retry_period=1, onstarted_leading=leads.set, onstopped_leading=stopped.set))
        threading.Thread(target=elected.run, daemon=True).start()
        self.assertTrue(leads.wait(20))
        api = client.CoordinationV1Api()
        first = api.read_namespaced_lease("leader", self.ns)
        self.assertIn("me", first.spec.holder_identity)
        eventually("it renews", lambda: api.read_namespaced_lease(
            "leader", self.ns).spec.renew_time != first.spec.renew_time)
        self.assertFalse(stopped.is_set())


class CountedResult(unittest.TextTestResult):
    """Remembers every case, for the count of tools/run_tests.py."""

    def startTest(self, test):
        super().startTest(test)
        self.started = getattr(self, "started", []) + [test.id()]

    def write_xml(self, path):
        bad = {test.id() for test, _ in self.failures + self.errors}
        cases = [f"<testcase name='{name}'>{'<failure/>' if name in bad else ''}</testcase>"
                 for name in self.started]
        with open(path, "w", encoding="utf-8") as file:
            file.write("<testsuites><testsuite name='python_client'>" + "\n".join(cases) +
                       "</testsuite></testsuites>")


def run(argv):
    print(f"kubernetes client {kubernetes.__version__}", flush=True)
    runner = unittest.TextTestRunner(resultclass=CountedResult)
    with Playground() as kubeconfig:
        config.load_kube_config(kubeconfig)
        result = unittest.main(module=sys.modules[__name__], argv=argv, exit=False,
                               testRunner=runner).result
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:"):  # where tools/run_tests.py looks for the count
        result.write_xml(output.removeprefix("xml:") + "python_client.xml")
    return 0 if result.wasSuccessful() else 1
