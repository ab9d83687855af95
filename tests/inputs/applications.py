"""The documents of the made-up manifests, application by application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .workloads import Object, a_pod, apart, claim_template, container, service, tasks_job, template, thing, workload

#: By service, its replicas and port.
BOOKSHOP = {"storefront": (3, 8080), "basket": (2, 7001), "catalogue": (2, 7002), "checkout": (1, 7003), "post": (1, 7004)}
LEDGERS, QUORUM, REPORTERS, SPREAD = 3, 3, 2, 4
#: Deployments of the monitoring, one pod each.
LOOKOUT = ("lookout-store", "lookout-pages", "lookout-adapter")
#: By file, by job: how many have to run, and the replicas and CPUs of each task.
TASKS: Mapping[str, Mapping[str, tuple[int, dict[str, tuple[int, str]]]]] = {
    "render.yaml": {"render": (3, {"frame": (5, "1")})},
    "teams.yaml": {
        "red-night": (1, {"worker": (4, "500m")}),
        "blue-night": (1, {"worker": (4, "500m")}),
        "blue-day": (2, {"worker": (3, "1")}),
    },
    "solver.yaml": {"solver": (3, {"lead": (1, "500m"), "hand": (2, "1500m")})},
}
SMALL = {"cpu": "100m", "memory": "64Mi"}


def bookshop() -> list[Object]:
    """Small services that call each other."""
    found = []
    for name, (replicas, port) in BOOKSHOP.items():
        labels = {"app": name, "part-of": "bookshop"}
        probe = {"httpGet": {"path": "/alive", "port": port}, "periodSeconds": 7}
        serving = container(
            "serve", SMALL, {"cpu": "300m", "memory": "256Mi"},
            ports=[{"containerPort": port}], env=[{"name": "PORT", "value": str(port)}], readinessProbe=probe,
        )  # fmt: skip
        found += [
            workload("Deployment", name, template(labels, serving, serviceAccountName=name), replicas=replicas),
            service(name, labels, {"http": port}),
            thing("v1", "ServiceAccount", name),
        ]
    return found


def ledger() -> list[Object]:
    """A database: ordinals with claims that would rather be apart."""
    labels = {"app": "ledger"}
    books = {"name": "books", "mountPath": "/books"}
    script = "set -e\nif [ ! -e /books/begun ]; then\n  begin --at /books\nfi\nexec keep-books\n"
    pods = template(
        labels,
        container("keeper", command=["sh", "-c", script], volumeMounts=[books]),
        initContainers=[container("opens", volumeMounts=[books])],
        affinity=apart({"matchExpressions": [{"key": "app", "operator": "In", "values": ["ledger"]}]}, required=False),
        volumes=[{"name": "books", "persistentVolumeClaim": {"claimName": "books"}}],
    )
    claims = [claim_template("books", "2Gi")]
    budget = {"minAvailable": "60%", "selector": {"matchLabels": labels}}
    return [
        service("ledger", labels, {"sql": 5433}, clusterIP="None"),
        thing("policy/v1beta1", "PodDisruptionBudget", "ledger", labels=labels, spec=budget),
        workload("StatefulSet", "ledger", pods, replicas=LEDGERS, serviceName="ledger", volumeClaimTemplates=claims),
    ]


def quorum() -> list[Object]:
    """Voters; the rule that should keep them apart selects nobody."""
    labels = {"app.kubernetes.io/name": "quorum"}
    voter = container("voter", {"cpu": "400m", "memory": "512Mi"}, volumeMounts=[{"name": "votes", "mountPath": "/votes"}])
    nobody = {"matchLabels": {"name": "quorum"}}
    pods = template(labels, voter, affinity=apart(nobody, required=True), securityContext={"runAsUser": 4000})
    claims = [claim_template("votes", "5Gi")]
    return [
        thing("policy/v1", "PodDisruptionBudget", "quorum", spec={"maxUnavailable": 1, "selector": {"matchLabels": labels}}),
        workload("StatefulSet", "quorum", pods, replicas=QUORUM, serviceName="quorum", volumeClaimTemplates=claims),
    ]


def resolver() -> list[Object]:
    """An addon with placeholders."""
    space, labels = "kube-system", {"app": "resolver"}
    rights = [{"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]}]
    settings = "answers {{ DOMAIN }}\n  forgets after 20s\n  asks /etc/resolv.conf\n"
    ports = [{"containerPort": 53, "name": f"dns-{each.lower()}", "protocol": each} for each in ("UDP", "TCP")]
    mounted = [{"name": "settings", "mountPath": "/etc/resolver", "readOnly": True}]
    pods = template(
        labels,
        container("resolver", SMALL, {"memory": "{{ MEMORY }}"}, ports=ports, volumeMounts=mounted),
        affinity=apart({"matchLabels": labels}, required=False),
        nodeSelector={"kubernetes.io/os": "linux"},
        priorityClassName="system-cluster-critical",
        serviceAccountName="resolver",
        tolerations=[{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        volumes=[{"name": "settings", "configMap": {"name": "resolver"}}],
    )
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:resolver"}
    subject = {"kind": "ServiceAccount", "name": "resolver", "namespace": space}
    return [
        thing("v1", "ServiceAccount", "resolver", space),
        thing("rbac.authorization.k8s.io/v1", "ClusterRole", "system:resolver", rules=rights),
        thing("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "system:resolver", roleRef=role, subjects=[subject]),
        thing("v1", "ConfigMap", "resolver", space, data={"settings": settings}),
        workload("Deployment", "resolver", pods, space, strategy={"rollingUpdate": {"maxUnavailable": 1}}),
        service("resolver", labels, {"dns": 53}, space, clusterIP="{{ ADDRESS }}"),
    ]


def gauge() -> Object:
    """Neither it nor the patch says which pods are its own."""
    reads = container("gauge", SMALL, ports=[{"containerPort": 10443, "name": "https"}])
    spec = {"containers": [reads], "priorityClassName": "system-cluster-critical", "nodeSelector": {"kubernetes.io/os": "linux"}}
    return thing("apps/v1", "Deployment", "gauge", "kube-system", spec={"template": {"spec": spec}})


def gauge_apart() -> Object:
    """The patch for it: twice, on nodes of their own."""
    rules = apart({"matchLabels": {"app": "gauge"}}, required=True)
    rules["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaces"] = ["kube-system"]
    return thing("apps/v1", "Deployment", "gauge", "kube-system", spec={"replicas": 2, "template": {"spec": {"affinity": rules}}})


def nightly() -> list[Object]:
    """What runs by the clock."""
    space, labels = "nightly", {"app": "report"}

    def run(name: str) -> Object:
        return template(labels, container(name, SMALL), restartPolicy="Never")

    def by_clock(name: str, **job: Any) -> Object:
        spec = {"schedule": "20 2 * * *", "jobTemplate": {"spec": {**job, "template": run(name)}}}
        return thing("batch/v1", "CronJob", name, space, spec=spec)

    reports = {"completions": 5, "parallelism": REPORTERS, "completionMode": "Indexed", "template": run("reports")}
    budget = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    return [
        thing("v1", "Namespace", space),
        by_clock("sweep"),
        by_clock("audit", suspend=True),
        thing("batch/v1", "Job", "reports", space, spec=reports),
        thing("policy/v1", "PodDisruptionBudget", "reports", space, spec=budget),
    ]


def lookout() -> list[Object]:
    """What looks at metrics."""
    both = (container("main", SMALL), container("proxy", {"cpu": "10m"}))
    pods = {name: template({"app": name}, *both, nodeSelector={"kubernetes.io/os": "linux"}) for name in LOOKOUT}
    return [workload("Deployment", name, each, "watching") for name, each in pods.items()]


def exporter() -> Object:
    """What every node has."""
    port = [{"containerPort": 9111, "hostPort": 9111, "name": "http"}]
    everywhere = [{"operator": "Exists"}]
    pods = template({"app": "exporter"}, container("exporter", SMALL, ports=port), hostNetwork=True, hostPID=True, tolerations=everywhere)
    return workload("DaemonSet", "exporter", pods, "watching", updateStrategy={"type": "RollingUpdate"})


def not_read() -> list[Object]:
    """Kinds that nothing here knows."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": LOOKOUT[0]}
    return [
        thing("lookout.test/v1", "Watchman", "main", "watching", spec={"replicas": 2, "resources": {"requests": SMALL}}),
        *(thing("lookout.test/v1", "Rule", name, "watching", spec={"when": "load > 5"}) for name in ("busy", "late")),
        thing("autoscaling/v2", "HorizontalPodAutoscaler", LOOKOUT[0], "watching", spec={"scaleTargetRef": target, "maxReplicas": 3}),
    ]


def near_one_generation() -> Object:
    """For nodes with a label."""
    wanted = [{"matchExpressions": [{"key": "generation", "operator": "In", "values": ["8", "11"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": wanted}}
    return a_pod("shows", container("shows"), affinity={"nodeAffinity": required})


def limits() -> list[Object]:
    """Within a limit and beyond it."""
    bounds = {"type": "Container", "max": {"cpu": "500m"}, "min": {"cpu": "50m"}}
    asked = {"below-the-limit": "300m", "above-the-limit": "900m"}
    return [
        thing("v1", "LimitRange", "half-a-core", spec={"limits": [bounds]}),
        *(a_pod(name, container("shows", {"cpu": cpu})) for name, cpu in asked.items()),
    ]


def priorities() -> list[Object]:
    """Two classes, and a pod of each."""
    classes = {"may-wait": 50, "may-not-wait": 5000}
    return [
        *(thing("scheduling.k8s.io/v1", "PriorityClass", name, value=value, globalDefault=False) for name, value in classes.items()),
        *(a_pod(f"pod-that-{name}", container("shows", {"cpu": "2"}, {"cpu": "2"}), priorityClassName=name) for name in classes),
    ]


def spread() -> Object:
    """Replicas spread over regions."""
    labels = {"app": "spread"}
    evenly = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/region", "whenUnsatisfiable": "DoNotSchedule"}
    pods = template(labels, container("shows"), topologySpreadConstraints=[{**evenly, "labelSelector": {"matchLabels": labels}}])
    return workload("Deployment", "spread", pods, replicas=SPREAD)


def taints() -> list[Object]:
    """Pods that tolerate a taint, and one that does not."""
    tolerates = [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}]
    return [
        a_pod("shows", container("shows", {"cpu": "2500m"}, {"cpu": "3"}), tolerations=tolerates),
        a_pod("does-not-tolerate", container("shows")),
        a_pod("tolerates", container("shows", {"cpu": "1"}), tolerations=tolerates),
    ]


def tasks() -> dict[str, list[Object]]:
    """Volcano Jobs, by file."""
    return {file: [tasks_job(name, *job) for name, job in jobs.items()] for file, jobs in TASKS.items()}
