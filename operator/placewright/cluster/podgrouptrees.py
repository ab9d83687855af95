"""Trees of groups: which groups have to stand for others to stand. A group without a parent is a tree with one leaf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from placewright.api.podgroups import Form, GroupRef, PodGroup
from placewright.api.pods import PodInfo

#: More members than any group has.
NO_NUMBER: Final = 1 << 30
#: Number of members by group: members with a node, or members that may get one.
Counts = Mapping[GroupRef, int]


def ref_of(pod: PodInfo) -> GroupRef:
    """Return the group that a member names."""
    assert pod.pod_group is not None  # only members of groups are decided together
    return pod.pod_group


@dataclass(frozen=True, slots=True)
class GroupTree:
    """A group with the groups below it. All are decided in one turn.

    A PodGroup stands with at least `min_member` members, a composite group with at least as many child groups that stand. Groups with the
    policy `basic` stand with one.

    Attributes:
        group: the group at the root.
        children: the trees of its child groups, in the order in which they are tried; empty for a PodGroup.
    """

    group: PodGroup
    children: tuple[GroupTree, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """True for a PodGroup, whose members are pods."""
        return self.group.ref.form is not Form.COMPOSITE

    def leaves(self) -> Iterator[PodGroup]:
        """Iterate over the groups that have pods as members, in the order in which they are tried."""
        if self.is_leaf:
            yield self.group
        for child in self.children:
            yield from child.leaves()

    def groups(self) -> Iterator[GroupTree]:
        """Iterate over the trees of all groups, each before those of its child groups."""
        yield self
        for child in self.children:
            yield from child.groups()

    def path_to(self, ref: GroupRef) -> list[GroupTree]:
        """Return the trees from this one down to the one of a group; empty if the group is not here."""
        if self.group.ref == ref:
            return [self]
        below = next(filter(None, (child.path_to(ref) for child in self.children)), [])
        return [self, *below] if below else []

    @property
    def needed(self) -> int:
        """The fewest members with which the tree could stand; at least `NO_NUMBER` while a group lacks child groups."""
        least = max(self.group.min_member, 1)
        if self.is_leaf:
            return least
        return sum(sorted(child.needed for child in self.children)[:least]) if len(self.children) >= least else NO_NUMBER

    def stands(self, counts: Counts) -> bool:
        """Return whether the group at the root stands with these members."""
        if self.is_leaf:
            return counts.get(self.group.ref, 0) >= max(self.group.min_member, 1)
        return sum(child.stands(counts) for child in self.children) >= max(self.group.min_member, 1)

    def staying(self, counts: Counts) -> set[GroupRef]:
        """Return the leaves whose members keep their nodes: each of them stands, and so does each group above it.

        Args:
            counts: members by group.

        Returns:
            The leaves, empty when the tree does not stand. A leaf with the policy `basic` needs no members for it.
        """
        if not self.stands(counts):
            return set()
        if self.is_leaf:
            return {self.group.ref}
        late = {leaf.group.ref for leaf in self.children if leaf.is_leaf and leaf.group.basic}
        return late.union(*(child.staying(counts) for child in self.children))
