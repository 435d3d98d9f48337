"""Counts cases by kind, collects what differs, and prints both."""
import collections
import sys
import time


class Report:
    def __init__(self, name, shown=2):
        self.name, self.shown, self.start = name, shown, time.time()
        self.agreed, self.listed, self.failed = collections.Counter(), collections.Counter(), collections.defaultdict(list)

    def agree(self, kind):
        self.agreed[kind] += 1

    def expect(self, why):
        """A difference that the design lists, or a case that one side does not have."""
        self.listed[why] += 1

    def fail(self, kind, case, text):
        """Cases of one kind are likely to have one cause: the first ones are shown in full."""
        self.failed[kind].append(case)
        if len(self.failed[kind]) <= self.shown:
            print(f"--- {self.name}: {kind}: {case}\n{text}\n", flush=True)

    def finish(self):
        """Whether all is well. A part that compared nothing has not run."""
        agreed, listed, failed = sum(self.agreed.values()), sum(self.listed.values()), sum(map(len, self.failed.values()))
        print(f"{self.name}: {agreed} agree, {failed} differ, {listed} as listed, {time.time() - self.start:.0f} s")
        for counter, mark in ((self.agreed, ""), (self.listed, "listed: "), ({k: len(v) for k, v in self.failed.items()}, "DIFFERS: ")):
            for kind, count in sorted(counter.items(), key=lambda item: -item[1]):
                print(f"  {count:6}  {mark}{kind}")
        sys.stdout.flush()
        return agreed > 0 and failed == 0
