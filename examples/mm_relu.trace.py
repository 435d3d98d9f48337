# A schedule of mm_relu.py as a person writes it: columns in groups of four, the ReLU computed beside them, the init split off.
def schedule(sch):
    i, j, k = sch.get_loops("Y")
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at("C", j0)
    sch.decompose_reduction("Y", k)
