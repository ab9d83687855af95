"""Limits of what a profile may say: one place for the checks and for the schema."""

from __future__ import annotations

from typing import Final

MAX_WEIGHT: Final = 100_000
MAX_PERCENTAGE: Final = 100
#: A day: a pod that waits longer than this looks lost to its owner.
MAX_BACKOFF_SECONDS: Final = 86_400
#: Backoff shorter than this would be a busy loop.
MIN_BACKOFF_SECONDS: Final = 0.001
#: Total scores are int64 columns: Σ weight · 100 must fit.
MAX_TOTAL_SCORE: Final = 2**63 - 1
MAX_NAME_LENGTH: Final = 253
#: Seconds that a call of an extender may take: its profile's pods wait meanwhile.
MAX_EXTENDER_TIMEOUT: Final = 600
MAX_URL_LENGTH: Final = 2048
#: Characters of a certificate, a key or a bundle of CAs in base64; a whole system's bundle has 300,000, and an object must fit into etcd.
MAX_PEM_LENGTH: Final = 524_288
#: Lists in a profile name plugins; far more than exist, and few enough for the API server to check cheaply.
MAX_ITEMS: Final = 100
#: Of the time, in percent, that one shadow may take.
MIN_SHADOW_BUDGET: Final = 0.1
MAX_SHADOW_BUDGET: Final = 50.0
