#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Replays recorded sessions against a server and compares the answers; README.md has the rules.
# Placeholders are bound by matching: the first answer that shows <uid:3> decides what it is, later
# answers and requests must use the same value.
# usage: replay.py [--managed-fields] [--text] [--skip-controllers] [--skip-watches]
#                  [--external PATH] URL TOKEN FILE...
"""Reference replayer of the golden sessions."""

import argparse
import base64
import calendar
import http.client
import json
import re
import ssl
import sys
import threading
import time
import urllib.parse

REQUEST_S = 90
POLL_S = 30
LONG_POLL_S = 100  # pod garbage collection and cron jobs work by the minute
WATCH_S = 20
SETTLE_S = 0.1  # after a poll, for what controllers write next
DIFFERENCES_MAX = 5
USER_AGENT = "golden/1.0"

# What a placeholder may stand for. Those with a number keep their value through the session.
NUMBERED = {
    "uid": r"[0-9a-f-]{36}",
    "rv": r"\d+",
    "listrv": r"\d+",
    "continue": r'[^"&]+',
    "gen": r"[a-z0-9]{5}",
    "hash": r"[a-z0-9]+",
    "ip": r"[0-9a-f.:]+",
    "nodeport": r"\d+",
}
PLAIN = {
    "text": ".*",
    "serverAddress": ".+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z",
    "longtime": r".+?",
    "event": r"[0-9a-f]+",
    "age": r"\S+",
    "n": r"\d+",
    "etag": ".+",
    "pointer": r"\(?0?x?[0-9a-f]+\)?",
    "storageVersionHash": ".*",
    "build": ".*",
    "jwt": ".+",
}
LOOSE = {"listrv"}  # may differ under one number
PLACEHOLDER = re.compile(r"<(%s):?(\d*)>|<(%s)>" % ("|".join(NUMBERED), "|".join(PLAIN)))
ABSENT = "<absent>"
# An age of a moment that a client sent is the recording's day minus that moment: it grows.
AGE = re.compile(r"((?:\d+[ydhms]){1,2})(?= ago\b)")
SENT_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"')
UNIT_S = {"y": 365 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}


def managed_fields_order(entry):
    return tuple(entry.get(k, "") for k in ("operation", "manager", "subresource", "apiVersion"))


def moments_in(text):
    """The moments that a request names, in seconds since 1970."""
    return {calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ"))
            for moment in SENT_TIME.findall(text)}


def is_age_of(age, moment, now):
    """Whether a person at `now` reads `age` ("2y335d") of `moment`."""
    parts = re.findall(r"(\d+)([ydhms])", age)
    least = sum(int(count) * UNIT_S[unit] for count, unit in parts)
    return least - 1 <= now - moment < least + UNIT_S[parts[-1][1]] + 1


class Bindings:
    """What the placeholders stand for, and the comparison that finds it out."""

    def __init__(self, compares_managed_fields, compares_text):
        self.values = {}
        self.sent_moments = set()
        self.compares_managed_fields = compares_managed_fields
        self.compares_text = compares_text

    def copy(self):
        other = Bindings(self.compares_managed_fields, self.compares_text)
        other.values = dict(self.values)
        other.sent_moments = set(self.sent_moments)
        return other

    def fill(self, text, quote=False):
        """The text of a request with the values found so far."""

        def value(match):
            name = match.group(0)
            found = self.values.get(name, name)
            is_token = quote and name.startswith("<continue") and name in self.values
            return urllib.parse.quote(found, safe="") if is_token else found

        return PLACEHOLDER.sub(value, text)

    def fill_json(self, value):
        if isinstance(value, dict):
            return {self.fill(k): self.fill_json(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.fill_json(v) for v in value]
        if not isinstance(value, str):
            return value
        filled = self.fill(value)
        return int(filled) if value.startswith("<nodeport") and filled.isdigit() else filled

    def match(self, golden, actual):
        if golden == actual:
            return True
        if "<" not in golden:
            return False
        pattern, names, begin = "", [], 0
        for found in PLACEHOLDER.finditer(golden):
            pattern += re.escape(golden[begin : found.start()])
            begin = found.end()
            name, kind = found.group(0), found.group(1) or found.group(3)
            if name in self.values and kind not in LOOSE:
                pattern += re.escape(self.values[name])
            else:
                pattern += "(" + (NUMBERED.get(kind) or PLAIN[kind]) + ")"
                names.append(name if found.group(2) else None)
        match = re.fullmatch(pattern + re.escape(golden[begin:]), actual, re.S)
        if match is None:
            return False
        self.values.update((k, v) for k, v in zip(names, match.groups()) if k)
        return True

    def match_lines(self, golden, actual):
        """The same line by line, so that no placeholder reaches into the next."""
        lines, others = golden.split("\n"), actual.split("\n")
        if len(lines) != len(others):
            return False
        return all([self.match(one, other) for one, other in zip(lines, others)])

    def compare(self, golden, actual, path, out, key=None):
        """Adds (path, golden, actual) to out for whatever differs."""
        if len(out) > DIFFERENCES_MAX:
            return
        if isinstance(golden, dict) and isinstance(actual, dict):
            self.compare_objects(golden, actual, path, out)
        elif isinstance(golden, list) and isinstance(actual, list):
            if key == "managedFields":
                actual = sorted(actual, key=managed_fields_order)
            if len(golden) != len(actual):
                out.append((path, f"{len(golden)} elements", f"{len(actual)} elements"))
                return
            for i, (one, other) in enumerate(zip(golden, actual)):
                self.compare(one, other, f"{path}[{i}]", out, key)
        elif isinstance(golden, str) and type(actual) in (str, int):
            self.compare_strings(golden, actual, path, out, key)
        elif type(golden) is not type(actual) or golden != actual:
            are_numbers = isinstance(golden, (int, float)) and isinstance(actual, (int, float))
            if not (are_numbers and golden == actual):
                out.append((path, golden, actual))

    def compare_objects(self, golden, actual, path, out):
        is_left_out = lambda k: k == "managedFields" and not self.compares_managed_fields
        for key in golden:
            if is_left_out(key):
                continue
            other = key if key in actual else None
            if other is None and "<" in key:
                other = next((k for k in actual if self.match(key, k)), None)
            if other is None:
                out.append((f"{path}.{key}", golden[key], ABSENT))
            else:
                self.compare(golden[key], actual[other], f"{path}.{key}", out, key)
        if any("<" in key for key in golden):
            return
        for key in actual:
            if key not in golden and not is_left_out(key):
                out.append((f"{path}.{key}", ABSENT, actual[key]))

    def compare_strings(self, golden, actual, path, out, key):
        if isinstance(actual, int) and not golden.startswith("<nodeport"):
            out.append((path, golden, actual))
        elif key == "message" and not self.compares_text:
            self.match(golden, str(actual))  # binds what it can
        elif key == "cells" and golden == "<age>":
            pass
        elif key == "cells" and AGE.search(golden):
            self.compare_ages(golden, actual, path, out)
        elif not self.match(golden, str(actual)):
            out.append((path, golden, actual))

    def compare_ages(self, golden, actual, path, out):
        """Each age must be that, today, of a moment which the session sent."""
        now = time.time()
        are_ages = all(any(is_age_of(age, moment, now) for moment in self.sent_moments)
                       for age in AGE.findall(actual))
        if not are_ages or not self.match(AGE.sub("<age>", golden), AGE.sub("<age>", actual)):
            out.append((path, golden, actual))


class Watch:
    """A stream that is read on a thread of its own."""

    def __init__(self, connection, path, headers):
        self.events, self.ended_by = [], None
        connection.request("GET", path, headers=headers)
        self.response = connection.getresponse()
        threading.Thread(target=self.read, daemon=True).start()
        time.sleep(0.1)

    def read(self):
        try:
            while line := self.response.readline():
                # ordinary bookmarks may come at any time
                if b"BOOKMARK" in line[:40] and b"initial-events-end" not in line:
                    continue
                self.events.append(json.loads(line))
            self.ended_by = "server"
        except (OSError, ValueError, http.client.HTTPException):
            self.ended_by = "client"


class Session:
    def __init__(self, options, path):
        with open(path, encoding="utf-8") as file:
            self.header, *self.steps = [json.loads(line) for line in file]
        self.options = options
        self.url = urllib.parse.urlparse(options.url)
        exactness = self.header.get("managedFields")
        self.bindings = Bindings(
            exactness == "exact" or (options.managed_fields and exactness != "left out"),
            options.text)
        is_long = any(word in path for word in ("podgc", "cronjob"))
        self.poll_s = LONG_POLL_S if is_long else POLL_S
        self.watches = {}
        self.helper = None
        self.compared = self.differing = 0
        self.connection = self.connect()

    def connect(self):
        host, port = self.url.hostname, self.url.port
        if self.url.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=REQUEST_S)
        context = ssl._create_unverified_context()
        return http.client.HTTPSConnection(host, port, timeout=REQUEST_S, context=context)

    def send(self, request):
        """(status, headers, body), or None for what cannot be asked of another server."""
        fill = self.bindings.fill
        headers = {"User-Agent": USER_AGENT}
        headers.update((k, fill(v)) for k, v in request["headers"].items())
        who = request.get("auth")
        if who is None:
            headers.setdefault("Authorization", "Bearer " + self.options.token)
        elif who == "other-user":
            headers["Authorization"] = "Bearer user"
        elif who == "bad-token":
            headers["Authorization"] = "Bearer wrong"
        data = None
        if "body" in request:
            data = json.dumps(self.bindings.fill_json(request["body"])).encode()
        elif "text" in request:
            data = fill(request["text"]).encode()
        elif "base64" in request:
            data = base64.b64decode(request["base64"])
        if data is not None:
            self.bindings.sent_moments |= moments_in(data.decode("utf8", "replace"))
        if headers.get("If-None-Match") == "<etag>" or "hash=<hash>" in request["path"]:
            return None
        for is_last in (False, True):
            try:
                self.connection.request(request["method"], fill(request["path"], True),
                                        body=data, headers=headers)
                response = self.connection.getresponse()
                body = response.read()
                found = {k.lower(): v for k, v in response.getheaders()}
                return response.status, found, body
            except (http.client.HTTPException, OSError):
                self.connection.close()
                self.connection = self.connect()
                if is_last:
                    raise

    def differences(self, golden, answer):
        """What differs, and the bindings that the answer leads to."""
        status, headers, body = answer
        bindings, out = self.bindings.copy(), []
        if status != golden["status"]:
            return [("status", golden["status"], f"{status} {body[:300]!r}")], bindings
        expected = golden["headers"]
        media_type, actual_type = expected.get("content-type"), headers.get("content-type", "")
        if media_type and actual_type.replace(" ", "") != media_type.replace(" ", ""):
            out.append(("content-type", media_type, actual_type))
        if ("warning" in expected) != ("warning" in headers):
            out.append(("warning", expected.get("warning"), headers.get("warning")))
        if "retry-after" in expected and "retry-after" not in headers:
            out.append(("retry-after", expected["retry-after"], None))
        if "body" in golden:
            try:
                actual = json.loads(body)
            except ValueError:
                actual = None
            bindings.compare(golden["body"], actual, "", out)
        elif "text" in golden and self.options.text:
            if not bindings.match(golden["text"], body.decode("utf8", "replace")):
                out.append(("text", golden["text"][:200], body[:200]))
        elif golden.get("digest") == "names":
            names = [item["metadata"]["name"] for item in json.loads(body).get("items", [])]
            bindings.compare(golden["reduced"], names, "names", out)
        return out, bindings

    def report(self, title, out):
        if not out:
            return
        self.differing += 1
        print(title)
        for path, golden, actual in out[:4]:
            print(f"    {path}")
            print(f"      golden {json.dumps(golden)[:300]}")
            print(f"      server {json.dumps(actual, default=str)[:300]}")

    def exchange(self, step):
        request = step["request"]
        answer = self.send(request)
        if answer is None:
            return
        self.compared += 1
        out, bindings = self.differences(step["response"], answer)
        if step.get("poll"):
            deadline = time.time() + self.poll_s
            while out and time.time() < deadline:
                self.help()
                time.sleep(0.2)
                out, bindings = self.differences(step["response"], self.send(request))
            self.helper = None
            if self.header["profile"] == "controllers":
                time.sleep(SETTLE_S)
        self.bindings = bindings
        title = f"{self.header['session']} #{step['n']} {request['method']} {request['path']}"
        self.report(title, out)

    def start_watch(self, step):
        headers = {"User-Agent": USER_AGENT, "Authorization": "Bearer " + self.options.token}
        headers.update(step["request"]["headers"])
        path = self.bindings.fill(step["request"]["path"], True)
        self.watches[step["watch"]] = Watch(self.connect(), path, headers)

    def wait_for_watch(self, step):
        deadline = time.time() + WATCH_S
        watch = self.watches[step["watch_wait"]]
        while time.time() < deadline and len(watch.events) < step["count"]:
            time.sleep(0.02)

    def end_watch(self, step):
        watch, by_server = self.watches[step["watch_end"]], step["ended_by"] == "server"
        self.compared += 1
        deadline = time.time() + WATCH_S
        while time.time() < deadline and (
                len(watch.events) < len(step["events"]) or (by_server and not watch.ended_by)):
            time.sleep(0.05)
        time.sleep(0.15)  # for an event too many
        out = []
        bindings = self.bindings.copy()
        bindings.compare(step["events"], watch.events, "events", out)
        if by_server and watch.ended_by != "server":
            out.append(("end", "server", "still open"))
        self.bindings = bindings
        self.report(f"{self.header['session']} watch {step['watch_end']} #{step['n']}", out)

    def help(self):
        """Plays kubelet (and scheduler) for the pods of a namespace."""
        if not self.helper:
            return
        pods = f"{self.helper['namespace']}/pods"
        accept = {"Accept": "application/json"}
        _, _, body = self.send({"method": "GET", "path": pods, "headers": accept})
        for pod in json.loads(body)["items"]:
            name = pod["metadata"]["name"]
            if self.helper["loop"] == "bind-and-mark":
                affinity = pod["spec"]["affinity"]["nodeAffinity"]
                required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
                node = required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
                self.send({"method": "POST", "path": f"{pods}/{name}/binding",
                           "headers": {**accept, "Content-Type": "application/json"},
                           "body": {"metadata": {"name": name},
                                    "target": {"kind": "Node", "name": node}}})
            if pod["status"].get("phase") == "Pending":
                media_type = "application/strategic-merge-patch+json"
                self.send({"method": "PATCH", "path": f"{pods}/{name}/status",
                           "headers": {**accept, "Content-Type": media_type},
                           "body": self.helper["body"]})

    def act_outside(self, step):
        """False when the rest of the session cannot be replayed."""
        if self.options.external is None:
            print(self.header["session"], "stops at an outside action:", step["external"])
            return False
        self.send({"method": "POST", "path": self.options.external, "headers": {}})
        return True

    def check_order_of_versions(self):
        if self.header["profile"] == "controllers":
            return
        versions = sorted((int(name[len("<rv:"):-1]), int(value))
                          for name, value in self.bindings.values.items()
                          if name.startswith("<rv:"))
        if any(one[1] >= other[1] for one, other in zip(versions, versions[1:])):
            self.differing += 1
            print(self.header["session"], "resourceVersions are not in the golden order", versions)

    def run(self):
        for step in self.steps:
            if "sleep" in step:
                time.sleep(step["sleep"])
            elif self.options.skip_watches and ("watch" in step or "watch_end" in step):
                continue
            elif "watch" in step:
                self.start_watch(step)
            elif "watch_wait" in step:
                self.wait_for_watch(step)
            elif "watch_end" in step:
                self.end_watch(step)
            elif "external" in step:
                if not self.act_outside(step):
                    break
            elif "loop" in step:
                self.helper = step
                self.help()
                if step["loop"] == "bind-and-mark":
                    self.helper = None
            elif "request" in step and "generated" not in step["request"]:
                self.exchange(step)
        self.check_order_of_versions()


def main():
    parser = argparse.ArgumentParser(description="replays recorded sessions against a server")
    parser.add_argument("--managed-fields", action="store_true", help="compare them everywhere")
    parser.add_argument("--text", action="store_true", help="compare the words of messages")
    parser.add_argument("--skip-controllers", action="store_true",
                        help="leave out sessions that need controllers")
    parser.add_argument("--skip-watches", action="store_true", help="leave out watches")
    parser.add_argument("--external", metavar="PATH",
                        help="POST this where the recording has an outside action")
    parser.add_argument("url", metavar="URL")
    parser.add_argument("token", metavar="TOKEN")
    parser.add_argument("files", metavar="FILE", nargs="+")
    options = parser.parse_args()
    compared = differing = 0
    for path in options.files:
        session = Session(options, path)
        if options.skip_controllers and session.header["profile"] == "controllers":
            continue
        session.run()
        compared += session.compared
        differing += session.differing
    print(compared, "exchanges compared,", differing, "differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
