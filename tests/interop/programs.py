"""Every operator's program: TVM reads it, and what TVM prints is, read by us, the same program."""
import operators
import ours
import theirs


def run(our, report):
    for workload in [*operators.small(our), *operators.tiled(our)]:
        try:
            text = our.ask("workload", text=workload)["program"]
        except ours.Refused as refused:
            if "dtype must be one of" not in str(refused):  # an operator on floats alone
                report.fail("refused here", workload, str(refused))
            continue
        mod = theirs.parse(text)
        difference = our.difference(text, mod.script())
        if difference:
            report.fail("another program", workload, difference)
        else:
            report.agree(workload.split(":")[0])
