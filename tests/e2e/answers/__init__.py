"""What kube-scheduler 1.20 answered for random pods, beside what Placewright answers for the same cluster at the same moment.

`randomcluster` invents objects, `recording` has kube-scheduler place them and keeps what it knew and said: `podrecording` of pods,
`volumerecording` of pods with volumes. `scene` is one decision with our verdict, `rules` and `spreading` know what changed since, `table`
has a line a plugin.

`sequences` does so with any version, pod after pod, with preemption, and where the server has them,
with claims (`claimed`); `grouped` adds groups of pods. `comparing` is what all of them share.
"""
