# SPDX-License-Identifier: Apache-2.0
#
# The kubelet's PodResources List, asked by itself and not through the agent's own client.

import collections

from small_grpc import call, fields, texts

METHOD = "/v1.PodResourcesLister/List"

Held = collections.namedtuple("Held", "namespace pod container resource device")


def held(path):
    """Who holds which device, by the kubelet's account."""
    result = []
    for _, pod in fields(call(path, METHOD)):
        (name,), (namespace,) = texts(pod, 1), texts(pod, 2)
        for container in (value for field, value in fields(pod) if field == 3):
            (container_name,) = texts(container, 1)
            for devices in (value for field, value in fields(container) if field == 2):
                (resource,) = texts(devices, 1)
                result += [Held(namespace, name, container_name, resource, device)
                           for device in texts(devices, 2)]
    return result
