# SPDX-License-Identifier: Apache-2.0
#
# An API server spoken to directly, for tests that make too many requests for one kubectl each: a
# `kubectl proxy` on a socket in a folder of its own does the credentials, so that any kubeconfig
# serves.

import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

START_SECONDS_MAX = 20
ASK_AGAIN_SECONDS = 0.1


class Refused(Exception):
    """An answer that is not a success."""

    def __init__(self, what, status, body):
        super().__init__(f"{what}: {status}: {body[:500]}")
        self.status = status


class Connection(http.client.HTTPConnection):
    """HTTP over the socket of the proxy."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Api:
    """`with Api(kubectl, kubeconfig) as api:`; each thread has a connection of its own."""

    def __init__(self, kubectl, kubeconfig):
        self.folder = tempfile.mkdtemp(prefix="jogak-e2e-proxy-")
        self.socket = os.path.join(self.folder, "socket")
        self.process = subprocess.Popen(
            [kubectl, "--kubeconfig", kubeconfig, "proxy", "--unix-socket", self.socket],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.local = threading.local()

    def __enter__(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise Refused("kubectl proxy", self.process.returncode, "it did not start")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def request(self, method, path, body=None, content_type="application/json"):
        """(status, text)"""
        if not hasattr(self.local, "connection"):
            self.local.connection = Connection(self.socket)
        connection = self.local.connection
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               {"Content-Type": content_type})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise

    def call(self, method, path, body=None, allow=(), **more):
        """The object that a request answers; statuses in `allow` give None."""
        status, text = self.request(method, path, body, **more)
        if status in allow:
            return None
        if status >= 300:
            raise Refused(f"{method} {path}", status, text)
        return json.loads(text)

    def get(self, path):
        return self.call("GET", path)

    def create(self, path, body, **more):
        return self.call("POST", path, body, **more)

    def patch(self, path, body):
        return self.call("PATCH", path, body, content_type="application/merge-patch+json")

    def delete(self, path, **more):
        return self.call("DELETE", path, **more)


class Follower:
    """All objects of one path, kept up to date by a thread; `wait` sleeps until a claim holds."""

    def __init__(self, api, path):
        self.api = api
        self.path = path
        self.objects = {}  # (namespace, name): object
        self.changed = threading.Condition()
        self.is_over = False
        self.version = self.list()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def list(self):
        answer = self.api.get(self.path)
        with self.changed:
            self.objects = {self.key(item): item for item in answer["items"]}
            self.changed.notify_all()
        return answer["metadata"]["resourceVersion"]

    @staticmethod
    def key(item):
        return item["metadata"].get("namespace", ""), item["metadata"]["name"]

    def follow(self):
        while not self.is_over:
            try:
                self.watch()
            except (OSError, ValueError, http.client.HTTPException):
                pass  # the stream was cut
            if not self.is_over:
                try:
                    self.version = self.list()
                except (OSError, Refused, http.client.HTTPException):
                    time.sleep(0.1)

    def watch(self):
        connection = Connection(self.api.socket)
        connection.timeout = 600
        mark = "&" if "?" in self.path else "?"
        connection.request("GET", f"{self.path}{mark}watch=true&resourceVersion={self.version}")
        for line in connection.getresponse():
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            with self.changed:
                if event["type"] == "DELETED":
                    self.objects.pop(self.key(event["object"]), None)
                else:
                    self.objects[self.key(event["object"])] = event["object"]
                self.changed.notify_all()

    def wait(self, claim, seconds):
        """What `claim(objects)` returned when it was true, or last of all. A claim may look at
        other things too, so it is asked now and then without a change."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                last = claim(self.objects)
                left = deadline - time.monotonic()
                if last or left <= 0:
                    return last
                self.changed.wait(min(left, ASK_AGAIN_SECONDS))

    def stop(self):
        self.is_over = True
