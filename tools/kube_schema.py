#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes the facts of the Kubernetes API types that the embedded API server needs, as one text: the
# arguments are the unpacked Go modules k8s.io/api, k8s.io/apimachinery,
# k8s.io/apiextensions-apiserver and k8s.io/kube-aggregator of one version; the output belongs in
# src/apiserver/schema/. Only facts are taken: names, types, numbers of protobuf fields, patch and
# list strategies; no documentation text. The format is described in src/apiserver/schema/schema.h.
# Run it again for a new version of Kubernetes.
# usage: tools/kube_schema.py API APIMACHINERY APIEXTENSIONS AGGREGATOR > kube.types

import pathlib
import re
import sys

# package -> folder of the module (0 api, 1 apimachinery, 2 apiextensions, 3 aggregator)
PACKAGES = {
    "core.v1": (0, "core/v1"), "apps.v1": (0, "apps/v1"), "batch.v1": (0, "batch/v1"),
    "policy.v1": (0, "policy/v1"), "scheduling.v1": (0, "scheduling/v1"),
    "scheduling.v1alpha2": (0, "scheduling/v1alpha2"), "storage.v1": (0, "storage/v1"),
    "coordination.v1": (0, "coordination/v1"), "events.v1": (0, "events/v1"),
    "rbac.v1": (0, "rbac/v1"), "autoscaling.v1": (0, "autoscaling/v1"),
    "autoscaling.v2": (0, "autoscaling/v2"), "resource.v1": (0, "resource/v1"),
    "discovery.v1": (0, "discovery/v1"), "authentication.v1": (0, "authentication/v1"),
    "authorization.v1": (0, "authorization/v1"), "node.v1": (0, "node/v1"),
    "networking.v1": (0, "networking/v1"), "certificates.v1": (0, "certificates/v1"),
    "admissionregistration.v1": (0, "admissionregistration/v1"),
    "flowcontrol.v1": (0, "flowcontrol/v1"),
    "apiregistration.v1": (3, "pkg/apis/apiregistration/v1"),
    "meta.v1": (1, "pkg/apis/meta/v1"),
    "apiextensions.v1": (2, "pkg/apis/apiextensions/v1"),
}
# The objects that are stored or posted; everything they reach is written.
ROOTS = """
core.v1.Namespace core.v1.Node core.v1.Pod core.v1.Service core.v1.ConfigMap core.v1.Secret
core.v1.ServiceAccount core.v1.Event core.v1.PersistentVolume core.v1.PersistentVolumeClaim
core.v1.LimitRange core.v1.ResourceQuota core.v1.ReplicationController core.v1.Endpoints
core.v1.Binding core.v1.PodTemplate core.v1.ComponentStatus
apps.v1.Deployment apps.v1.ReplicaSet apps.v1.StatefulSet apps.v1.DaemonSet
apps.v1.ControllerRevision batch.v1.Job batch.v1.CronJob policy.v1.PodDisruptionBudget
policy.v1.Eviction scheduling.v1.PriorityClass scheduling.v1alpha2.PodGroup
scheduling.v1alpha2.Workload coordination.v1.Lease events.v1.Event storage.v1.StorageClass
storage.v1.CSINode storage.v1.CSIDriver storage.v1.CSIStorageCapacity storage.v1.VolumeAttachment
resource.v1.DeviceClass resource.v1.ResourceSlice resource.v1.ResourceClaim
resource.v1.ResourceClaimTemplate autoscaling.v1.HorizontalPodAutoscaler autoscaling.v1.Scale
autoscaling.v2.HorizontalPodAutoscaler rbac.v1.Role rbac.v1.RoleBinding rbac.v1.ClusterRole
rbac.v1.ClusterRoleBinding discovery.v1.EndpointSlice authentication.v1.TokenRequest
authentication.v1.TokenReview authentication.v1.SelfSubjectReview
authorization.v1.SelfSubjectAccessReview authorization.v1.SelfSubjectRulesReview
authorization.v1.SubjectAccessReview authorization.v1.LocalSubjectAccessReview node.v1.RuntimeClass
apiextensions.v1.CustomResourceDefinition apiregistration.v1.APIService
certificates.v1.CertificateSigningRequest networking.v1.Ingress networking.v1.IngressClass
networking.v1.NetworkPolicy networking.v1.IPAddress networking.v1.ServiceCIDR
storage.v1.VolumeAttributesClass admissionregistration.v1.MutatingAdmissionPolicy
admissionregistration.v1.MutatingAdmissionPolicyBinding
admissionregistration.v1.MutatingWebhookConfiguration
admissionregistration.v1.ValidatingAdmissionPolicy
admissionregistration.v1.ValidatingAdmissionPolicyBinding
admissionregistration.v1.ValidatingWebhookConfiguration flowcontrol.v1.FlowSchema
flowcontrol.v1.PriorityLevelConfiguration meta.v1.DeleteOptions meta.v1.CreateOptions
meta.v1.PatchOptions meta.v1.UpdateOptions meta.v1.ListOptions meta.v1.Status
meta.v1.PartialObjectMetadata
""".split()
SCALARS = {
    "string": "string", "bool": "bool", "int": "int64", "int32": "int32", "int64": "int64",
    "uint8": "int32", "float64": "float64", "byte": "int32",
    "resource.Quantity": "quantity", "intstr.IntOrString": "intorstring", "types.UID": "string",
    "types.NodeName": "string", "runtime.RawExtension": "raw", "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime", "meta.v1.Duration": "duration", "meta.v1.FieldsV1": "fields",
    "apiextensions.v1.JSON": "json", "apiextensions.v1.JSONSchemaPropsOrArray": "raw",
    "apiextensions.v1.JSONSchemaPropsOrBool": "raw",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "raw",
}
IMPORTS = {"metav1": "meta.v1", "v1": "core.v1", "corev1": "core.v1", "v1beta1": None,
           "autoscalingv1": "autoscaling.v1", "batchv1": "batch.v1", "apiv1": "core.v1",
           "nodev1": "node.v1"}
FIELD = re.compile(r"^\s+(?:(\w+)\s+)?([\w.\[\]*]+)\s+`([^`]*)`")


class Reader:
    def __init__(self, roots):
        self.structs = {}  # full name -> list of (json, gotype, tag dict, markers)
        self.named = {}    # full name -> go type
        self.marks = {}    # full name -> markers of the type
        for package, (module, folder) in PACKAGES.items():
            for path in sorted((pathlib.Path(roots[module]) / folder).glob("*.go")):
                if re.search(r"_test\.go$|^zz_|generated|_fuzz|_proto\.go$", path.name):
                    continue
                self.read(package, path.read_text())

    def read(self, package, text):
        markers, fields = [], None
        for line in text.split("\n"):
            mark = re.match(r"^\s*// ?\+(\S+)", line)
            if mark:
                markers.append(mark.group(1))
                continue
            if re.match(r"^\s*//", line) or (fields is None and not line.strip()):
                if not line.strip():
                    markers = []
                continue
            start = re.match(r"^(?:type|\t)\s*(\w+)\s+struct ?\{", line)
            named = re.match(r"^type (\w+) =? ?([\w.\[\]*]+)\s*$", line)
            if fields is None and start:
                name, fields, type_marks = f"{package}.{start.group(1)}", [], markers
                if line.rstrip().endswith("}"):
                    self.structs[name], fields = [], None
                markers = []
            elif fields is None and named:
                self.named[f"{package}.{named.group(1)}"] = (package, named.group(2))
                markers = []
            elif fields is not None and line.startswith("}"):
                self.structs[name], self.marks[name], fields, markers = fields, type_marks, None, []
            elif fields is not None:
                match = FIELD.match(line)
                if match:
                    tags = dict(re.findall(r'(\w+):"([^"]*)"', match.group(3)))
                    fields.append((match.group(1), match.group(2), tags, markers))
                if line.strip():
                    markers = []
            else:
                markers = []

    def resolve(self, package, go):
        """-> (prefix of *, [] and {}, base name or full struct name)"""
        if go.startswith("*"):
            shape, base = self.resolve(package, go[1:])
            return "*" + shape, base
        if go == "[]byte":
            return "", "bytes"
        if go.startswith("[]"):
            shape, base = self.resolve(package, go[2:])
            return "[]" + shape, base
        if go.startswith("map["):
            shape, base = self.resolve(package, go[go.index("]") + 1:])
            return "{}" + shape, base
        if go in SCALARS:
            return "", SCALARS[go]
        if "." in go:
            alias, name = go.split(".")
            if alias in ("resource", "intstr", "types", "runtime"):
                return "", SCALARS[go]
            full = f"{IMPORTS[alias]}.{name}"
        else:
            full = f"{package}.{go}"
        if full in SCALARS:
            return "", SCALARS[full]
        if full in self.named:
            return self.resolve(*self.named[full])
        if full not in self.structs:
            raise SystemExit(f"kube_schema.py: unknown type {full}")
        return "", full


def flags_of(go, tags, markers):
    words = []
    options = tags["json"].split(",")[1:]
    if "omitempty" in options:
        words.append("e")
    if "omitzero" in options:
        words.append("z")
    if "optional" in markers or "k8s:optional" in markers:
        words.append("o")
    if "patchStrategy" in tags:
        words.append("p=" + tags["patchStrategy"].replace(" ", ""))
    if "patchMergeKey" in tags:
        words.append("pk=" + tags["patchMergeKey"])
    keys = []
    for marker in markers:
        for name, short in (("listType", "l"), ("mapType", "m"), ("structType", "s")):
            if marker.startswith(name + "="):
                words.append(f"{short}={marker.split('=')[1]}")
        if marker.startswith("listMapKey="):
            keys.append(marker.split("=")[1])
        if marker.startswith("default="):
            words.append("d=" + marker.split("=", 1)[1])
    if keys:
        words.append("k=" + ",".join(keys))
    return words


def emit(reader):
    done, queue, out = set(), list(ROOTS), []
    while queue:
        name = queue.pop(0)
        if name in done:
            continue
        done.add(name)
        package = name.rsplit(".", 1)[0]
        out.append(" ".join(["type", name] + [f"s={m.split('=')[1]}" for m in reader.marks.get(
            name, []) if m.startswith("structType=")]))

        def fields(owner, inline):
            pkg = owner.rsplit(".", 1)[0]
            for _, go, tags, markers in reader.structs[owner]:
                if "json" not in tags or tags["json"] == "-":
                    continue
                json_name = tags["json"].split(",")[0]
                proto = tags.get("protobuf", "")
                number = proto.split(",")[1] if proto else "0"
                shape, base = reader.resolve(pkg, go)
                if not json_name:  # inline
                    if base == "meta.v1.TypeMeta":
                        yield "kind 0 string e", None
                        yield "apiVersion 0 string e", None
                    else:
                        yield from fields(base, number)
                    continue
                words = flags_of(go, tags, markers)
                if inline:
                    words.append("i=" + inline)
                yield f"{json_name} {number} {shape}{base} {' '.join(words)}".rstrip(), base

        for line, base in fields(name, ""):
            out.append(line)
            if base and base in reader.structs and base not in SCALARS.values():
                queue.append(base)
        assert package
    return out


def main():
    if len(sys.argv) != 5:
        raise SystemExit("usage: tools/kube_schema.py API APIMACHINERY APIEXTENSIONS AGGREGATOR")
    versions = [re.search(r"@(v[^/]+)", path) for path in sys.argv[1:]]
    lines = emit(Reader(sys.argv[1:]))
    print("# Written by tools/kube_schema.py from the Go modules k8s.io/{api,apimachinery,"
          "apiextensions-apiserver}")
    print("# " + " ".join(v.group(1) for v in versions if v) + " (Apache-2.0). Do not edit.")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
