"""What kube-scheduler 1.20 answered for random pods, beside what Placewright answers for the same cluster at the same moment.

`randomcluster` invents objects, `recording` has kube-scheduler place them and keeps what it knew and said, `scorelog` reads its log.
`scene` is one decision with our verdict, `rules`, `spreading` and `wording` know what changed since, `table` has a line a plugin.

`sequences` does so with any version, pod after pod, with preemption, and where the server has them,
with claims (`claimed`); `grouped` adds groups of pods.
"""
