# SPDX-License-Identifier: Apache-2.0
#
# The kubelet's PodResources API, asked by itself and not through the agent's own client.

import collections

from small_grpc import call, fields, texts

SERVICE = "/v1.PodResourcesLister/"

Held = collections.namedtuple("Held", "namespace pod container resource device")


def held(path):
    """Who holds which device, by the kubelet's account."""
    result = []
    for _, pod in fields(call(path, SERVICE + "List")):
        (name,), (namespace,) = texts(pod, 1), texts(pod, 2)
        for container in (value for field, value in fields(pod) if field == 3):
            (container_name,) = texts(container, 1)
            for devices in (value for field, value in fields(container) if field == 2):
                (resource,) = texts(devices, 1)
                result += [Held(namespace, name, container_name, resource, device)
                           for device in texts(devices, 2)]
    return result


def allocatable(path, resource):
    """How many healthy devices the kubelet has to give, by its own account at this moment."""
    devices = (value for field, value in fields(call(path, SERVICE + "GetAllocatableResources"))
               if field == 1)
    return sum(len(texts(one, 2)) for one in devices if texts(one, 1) == [resource])
