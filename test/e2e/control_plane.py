#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A real Kubernetes control plane on loopback, for tests: etcd and kube-apiserver from the folder
# $KUBEBUILDER_ASSETS, kube-controller-manager and kube-scheduler where they are there. Certificates
# and keys of its own (made by openssl), TLS verified by everybody, RBAC on. It has no kubelets:
# nobody starts pods, nobody confirms that one has ended, and nobody renews a node's lease. So the
# node lifecycle and taint eviction controllers stay off and TaintNodesByCondition too: a node is
# what whoever makes it says, and schedulable at once.
# usage: test/e2e/control_plane.py [--scheduler-config FILE] [--run COMMAND...]
#   without --run it prints the path of the administrator's kubeconfig and goes on until Ctrl-C;
#   COMMAND gets that path in $KUBECONFIG, and its exit code is the program's

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

START_SECONDS_MAX = 90
STOP_SECONDS_MAX = 20
LOG_TAIL_LINES = 15
PR_SET_PDEATHSIG = 1
NEEDED = ("etcd", "kube-apiserver", "kubectl")
HOW_TO_GET = ("it names a folder with etcd, kube-apiserver and kubectl, as "
              "`setup-envtest use -p path` prints")


class NotStarted(Exception):
    """The control plane did not come up; the text has the tail of the log that tells."""


def missing():
    """Why no control plane can be started here, "" when one can."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not folder:
        return "KUBEBUILDER_ASSETS is not set"
    lacking = [name for name in NEEDED if not os.access(os.path.join(folder, name), os.X_OK)]
    if lacking:
        return f"KUBEBUILDER_ASSETS: {folder} has no {', '.join(lacking)}"
    if not shutil.which("openssl"):
        return "there is no openssl to make certificates with"
    return ""


def asset(name):
    """The program's path in the folder, None when it is not there."""
    path = os.path.join(os.environ.get("KUBEBUILDER_ASSETS", ""), name)
    return path if os.access(path, os.X_OK) else None


def free_ports(count):
    """Ports that were free a moment ago; all are held open together so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def signal_when_parent_dies(number):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def die_with_parent():
    """Runs in the child before exec: whatever ends us ends it, a SIGKILL included."""
    signal_when_parent_dies(signal.SIGKILL)
    # Ctrl-C reaches the whole group of the terminal; we stop the parts ourselves, in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def stop_when_told():
    """Other ends take the same way out as Ctrl-C, so that nothing is left behind."""
    signal_when_parent_dies(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))


class Certificates:
    """An authority and what it signed, as PEM files in one folder."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, mode=0o700)
        self.authority = self.path("ca.crt")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-days", "30", "-subj", "/CN=jogak-e2e", "-keyout",
                     self.path("ca.key"), "-out", self.authority,
                     "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out",
                     self.path("accounts.key"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *args):
        done = subprocess.run(["openssl", *args], capture_output=True, text=True)
        if done.returncode != 0:
            raise NotStarted(f"openssl {args[0]}: {done.stderr.strip()}")

    def sign(self, name, common_name, group="", hosts=""):
        """NAME.crt and NAME.key: for a server when it has hosts, else for a client."""
        request, usage = self.path(name + ".csr"), "serverAuth" if hosts else "clientAuth"
        subject = (f"/O={group}" if group else "") + f"/CN={common_name}"
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-subj", subject, "-keyout", self.path(name + ".key"), "-out", request)
        extensions = self.path(name + ".ext")
        pathlib.Path(extensions).write_text(
            f"extendedKeyUsage={usage}\n" + (f"subjectAltName={hosts}\n" if hosts else ""),
            encoding="utf-8")
        self.openssl("x509", "-req", "-in", request, "-CA", self.authority, "-CAkey",
                     self.path("ca.key"), "-CAcreateserial", "-days", "30", "-extfile",
                     extensions, "-out", self.path(name + ".crt"))


class ControlPlane:
    """`with ControlPlane() as plane:`; plane.kubeconfig is the administrator's."""

    def __init__(self, controllers=True, scheduler=True, scheduler_config=None,
                 scheduler_flags=(), apiserver_flags=()):
        self.controllers = controllers and asset("kube-controller-manager") is not None
        self.scheduler = scheduler and asset("kube-scheduler") is not None
        self.scheduler_config = scheduler_config  # text of a KubeSchedulerConfiguration's profiles
        self.scheduler_flags = list(scheduler_flags)
        self.apiserver_flags = list(apiserver_flags)
        self.processes = {}
        self.folder = self.certificates = self.kubeconfig = self.url = None
        self.scheduler_port = None  # HTTPS, for /metrics, when kube-scheduler runs

    def __enter__(self):
        why = missing()
        if why:
            raise NotStarted(f"{why}; {HOW_TO_GET}")
        self.folder = tempfile.mkdtemp(prefix="jogak-control-plane-")
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        etcd_port, peer_port, api_port, self.scheduler_port = free_ports(4)
        self.url = f"https://127.0.0.1:{api_port}"
        self.certificates = Certificates(self.path("pki"))
        self.start_etcd(etcd_port, peer_port)  # it gets ready while the certificates are signed
        pem = self.certificates
        pem.sign("server", "kube-apiserver", hosts="IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,"
                 "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc")
        pem.sign("admin", "e2e-admin", group="system:masters")
        for name in ("kube-controller-manager", "kube-scheduler"):
            pem.sign(name, "system:" + name)
            self.write_kubeconfig(name)
        self.kubeconfig = self.write_kubeconfig("admin")
        self.start_apiserver(api_port, etcd_port)
        self.wait_for("kube-apiserver", lambda: self.get("/readyz") == "ok")
        if self.controllers:
            self.start_controllers()
        if self.scheduler:
            self.start_scheduler()
        if self.controllers:
            self.wait_for("kube-controller-manager", lambda: self.get(
                "/api/v1/namespaces/default/serviceaccounts/default"))

    def start_etcd(self, port, peer_port):
        own, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        self.launch("etcd", "--name=e2e", "--data-dir=" + self.path("etcd"),
                    "--listen-client-urls=" + own, "--advertise-client-urls=" + own,
                    "--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
                    "--initial-cluster=e2e=" + peer,
                    "--unsafe-no-fsync")  # nothing of it outlives the test

    def start_apiserver(self, port, etcd_port):
        pem = self.certificates.path
        self.launch(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--secure-port={port}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",  # it refuses to publish a loopback address
            "--cert-dir=" + self.path("apiserver"),
            "--tls-cert-file=" + pem("server.crt"), "--tls-private-key-file=" + pem("server.key"),
            "--client-ca-file=" + pem("ca.crt"),
            "--service-account-key-file=" + pem("accounts.key"),
            "--service-account-signing-key-file=" + pem("accounts.key"),
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=Node,RBAC",
            "--disable-admission-plugins=TaintNodesByCondition", "--allow-privileged=true",
            *self.apiserver_flags)

    def start_controllers(self):
        pem = self.certificates.path
        self.launch(
            "kube-controller-manager", "--kubeconfig=" + self.path("kube-controller-manager.conf"),
            "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
            "--leader-elect=false", "--use-service-account-credentials=true", "--secure-port=0",
            "--root-ca-file=" + pem("ca.crt"),
            "--service-account-private-key-file=" + pem("accounts.key"),
            "--kube-api-qps=200", "--kube-api-burst=400")

    def start_scheduler(self):
        config = self.path("scheduler-config.json")
        pathlib.Path(config).write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": self.path("kube-scheduler.conf")},
            "leaderElection": {"leaderElect": False},
            **(self.scheduler_config or {})}), encoding="utf-8")
        self.launch(
            "kube-scheduler", "--config=" + config, "--bind-address=127.0.0.1",
            f"--secure-port={self.scheduler_port}", "--cert-dir=" + self.path("scheduler"),
            *(f"--{flag}-kubeconfig=" + self.path("kube-scheduler.conf")
              for flag in ("authentication", "authorization")),
            *self.scheduler_flags)

    def launch(self, name, *args):
        with open(self.path(name + ".log"), "wb") as log:
            self.processes[name] = subprocess.Popen(
                [asset(name), *args], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, preexec_fn=die_with_parent)

    def write_kubeconfig(self, user):
        pem = self.certificates.path
        path = self.path("kubeconfig" if user == "admin" else user + ".conf")
        cluster = {"server": self.url, "certificate-authority": pem("ca.crt")}
        credentials = {"client-certificate": pem(user + ".crt"), "client-key": pem(user + ".key")}
        pathlib.Path(path).write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
        }, indent=1), encoding="utf-8")
        os.chmod(path, 0o600)
        return path

    def get(self, path):
        """What the API server answers to the administrator; None while it refuses."""
        context = ssl.create_default_context(cafile=self.certificates.authority)
        context.load_cert_chain(self.certificates.path("admin.crt"),
                                self.certificates.path("admin.key"))
        try:
            with urllib.request.urlopen(self.url + path, context=context, timeout=5) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError):
            return None

    def wait_for(self, name, claim):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not claim():
            for part, process in self.processes.items():
                if process.poll() is not None:
                    raise NotStarted(f"{part} ended with {process.returncode}\n{self.tail(part)}")
            if time.monotonic() > deadline:
                raise NotStarted(f"{name} is not ready after {START_SECONDS_MAX} s\n"
                                 f"{self.tail(name)}")
            time.sleep(0.05)

    def tail(self, name, lines=LOG_TAIL_LINES):
        """The end of a part's log."""
        path = pathlib.Path(self.path(name + ".log"))
        text = path.read_text(errors="replace") if path.exists() else ""
        return "\n".join(f"  {name}: {line}" for line in text.splitlines()[-lines:])

    def tails(self):
        """The ends of all logs, to show when a test failed."""
        return "\n".join(self.tail(name) for name in self.processes)

    def died(self):
        """Names of the parts that ended by themselves."""
        return [name for name, process in self.processes.items() if process.poll() is not None]

    def stop(self):
        """The clients of the API server first, etcd last; then nothing of it is left."""
        for process in reversed(self.processes.values()):
            if process.poll() is None:
                process.terminate()
                # the API server waits for watches to end; its data go with it
                try:
                    process.wait(timeout=2 if process is not self.processes.get("etcd")
                                 else STOP_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="a control plane on loopback")
    parser.add_argument("--scheduler-config", metavar="FILE",
                        help="JSON with fields of a KubeSchedulerConfiguration, like profiles")
    parser.add_argument("--no-scheduler", action="store_true", help="leave kube-scheduler out")
    parser.add_argument("--no-controllers", action="store_true",
                        help="leave kube-controller-manager out")
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="COMMAND",
                        help="run this with $KUBECONFIG set, then stop")
    options = parser.parse_args()
    config = None
    if options.scheduler_config:
        config = json.loads(pathlib.Path(options.scheduler_config).read_text(encoding="utf-8"))
    stop_when_told()
    begin = time.monotonic()
    try:
        with ControlPlane(controllers=not options.no_controllers,
                          scheduler=not options.no_scheduler, scheduler_config=config) as plane:
            print(f"# {', '.join(plane.processes)} ready in {time.monotonic() - begin:.1f} s; "
                  f"logs in {plane.folder}", file=sys.stderr, flush=True)
            if options.run:
                code = subprocess.run(options.run, env=dict(
                    os.environ, KUBECONFIG=plane.kubeconfig)).returncode
                if code != 0 or plane.died():
                    print(plane.tails(), file=sys.stderr)
                return code or (1 if plane.died() else 0)
            print(plane.kubeconfig, flush=True)
            while not plane.died():
                time.sleep(0.5)
            print(f"{', '.join(plane.died())} ended\n{plane.tails()}", file=sys.stderr)
            return 1
    except NotStarted as reason:
        print(f"control_plane.py: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
