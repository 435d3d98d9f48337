# A design space as a person writes it: a schedule whose sampled numbers are left open. `tune --space` searches them.
#   tilewright tune examples/matmul_space/matmul.py --space examples/matmul_space/space.py --trials 64
def columns_in_tiles(sch):
    i, j, k = sch.get_loops("C")
    tiles = sch.sample_perfect_tile(j, n=3, max_innermost_factor=64)
    j0, j1, j2 = sch.split(j, factors=tiles)
    sch.reorder(j0, i, j1, k, j2)
    sch.vectorize(j2)
    sch.decompose_reduction("C", k)
