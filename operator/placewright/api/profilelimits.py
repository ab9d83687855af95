"""The limits of what a SchedulingProfile may say. The API server holds them by the definition, the operator everywhere.

Three places read them: annotations of fields (`api.profile`, `api.extenders`), rules across fields (`profiles.rules`), and the operator's
own checks (`profiles.check`). API servers before 1.25 depend on the last.
"""

from __future__ import annotations

from typing import Final

# --- numbers -----------------------------------------------------------------------------------------------------------------

MAX_WEIGHT: Final = 100_000
MAX_PERCENTAGE: Final = 100
#: A day: a pod that waits longer than this looks lost to its owner.
MAX_BACKOFF_SECONDS: Final = 86_400
#: Backoff shorter than this would be a busy loop.
MIN_BACKOFF_SECONDS: Final = 0.001
#: Seconds that a pod waits before it is given up: a decision needs less than the least, and no pod is waited for longer than a year.
MIN_GIVE_UP_SECONDS: Final = 1
MAX_GIVE_UP_SECONDS: Final = 31_536_000
#: Total scores are int64 columns: Σ weight · 100 must fit.
MAX_TOTAL_SCORE: Final = 2**63 - 1
#: Seconds that a call of an extender may take: its profile's pods wait meanwhile.
MAX_EXTENDER_TIMEOUT: Final = 600
#: Share of the time, in percent, that one shadow may take.
MIN_SHADOW_BUDGET: Final = 0.1
MAX_SHADOW_BUDGET: Final = 50.0
#: Weight of a tenant in `spec.fairness`. Any proportion that a person means fits, and turns stay exact in integers.
MAX_TENANT_WEIGHT: Final = 1_000

# --- sizes -------------------------------------------------------------------------------------------------------------------

#: Characters of the name of a scheduler, a plugin or an object; a domain may have as many.
MAX_NAME_LENGTH: Final = 253
#: A domain, a slash, and a name of 63 characters.
MAX_RESOURCE_NAME_LENGTH: Final = 317
#: Characters of a duration; the longest that Go prints is shorter.
MAX_DURATION_LENGTH: Final = 64
MAX_URL_LENGTH: Final = 2048
#: A domain, a slash, and a name of 63 characters.
MAX_LABEL_KEY_LENGTH: Final = 317
#: Tenants whose weight a profile may name; all others have a weight of 1.
MAX_TENANT_WEIGHTS: Final = 1_000
MAX_PATH_LENGTH: Final = 4096
#: Characters of a certificate, a key or a bundle of CAs in base64; a whole system's bundle has 300,000, and an object must fit into etcd.
MAX_PEM_LENGTH: Final = 524_288
#: Lists in a profile name plugins; far more than exist, and few enough for the API server to check cheaply.
MAX_ITEMS: Final = 100
#: List items and fields in the arguments of all plugins together. Added node affinity of a thousand terms has about as many.
MAX_VALUES: Final = 10_000
