"""Which pod is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubernetes.config import ConfigException, list_kube_config_contexts

_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod by name; `uid` is empty where the one that has the name now is meant."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def current_namespace(kubeconfig: str | None, context: str | None) -> str:
    """The namespace that kubectl would look into."""
    try:
        contexts, active = list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, TypeError, KeyError):
        return _DEFAULT  # in a pod, say; whether there is a cluster at all is found out by whoever asks it
    named = next((each for each in contexts if each.get("name") == context), None) if context else active
    namespace = ((named or {}).get("context") or {}).get("namespace")
    return namespace if isinstance(namespace, str) and namespace else _DEFAULT
